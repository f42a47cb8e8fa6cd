//! A batch and a receiver: what was refused together is tried in halves, until the span that is to blame stands alone; that one is tried
//! once more with everything long in it shortened.

use crate::{
    encode,
    feed::Ready,
    transport::{Answer, Transport},
};
use std::{ops::Range, time::Duration};
use tracegate_core::span::Resource;

/// After how many spans of a batch, all refused alone, the receiver is the one to blame.
const CONDEMNED: usize = 8;

/// What became of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The receiver has it.
    Taken,
    /// The receiver has what was left of it.
    Cut,
    /// The receiver will never have it.
    Condemned(String),
}

/// Why a delivery ended before its batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Halt {
    /// Not now.
    Later { why: String, wait: Option<Duration> },
    /// The receiver takes nothing at all.
    Refuses(String),
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Delivered {
    /// Of its first spans, in order.
    pub(crate) fates: Vec<Fate>,
    /// How many of those that were taken the receiver says it left out, and why.
    pub(crate) rejected: u64,
    pub(crate) remark: Option<String>,
    /// Why there are no more, if there are none.
    pub(crate) halt: Option<Halt>,
}

/// Sends `batch` front to back.
pub(crate) async fn deliver(transport: &impl Transport, resource: &Resource, batch: &[Ready]) -> Delivered {
    let mut done = Delivered::default();
    // What is still to be sent, the first part last.
    let mut parts = Vec::from([Range {
        start: 0,
        end: batch.len(),
    }]);
    while let Some(part) = parts.pop() {
        let ready = batch.get(part.clone()).unwrap_or_default();
        let spans = ready.iter().map(|ready| ready.span.clone()).collect();
        let answer = transport.send(encode::request(resource, spans)).await.answer;
        match (answer, ready) {
            (Answer::Refused(why), [alone]) => {
                let shorter = vec![encode::cut(alone.span.clone())];
                match transport.send(encode::request(resource, shorter)).await.answer {
                    Answer::Refused(_) => done.fates.push(Fate::Condemned(why)),
                    answer @ (Answer::Taken
                    | Answer::Partly { .. }
                    | Answer::Misdirected(_)
                    | Answer::Later { .. }) => done.settle(answer, 1, Fate::Cut),
                }
            }
            (Answer::Refused(_), _) => parts.extend(halves(&part)),
            (
                answer @ (Answer::Taken
                | Answer::Partly { .. }
                | Answer::Misdirected(_)
                | Answer::Later { .. }),
                _,
            ) => done.settle(answer, ready.len(), Fate::Taken),
        }
        let condemned = |fate: &Fate| matches!(fate, Fate::Condemned(_));
        if let Some(Fate::Condemned(why)) = done.fates.last()
            && done.fates.len() >= CONDEMNED
            && done.fates.iter().all(condemned)
        {
            done.halt = Some(Halt::Refuses(why.clone()));
        }
        if done.halt.is_some() {
            break;
        }
    }
    done
}

impl Delivered {
    fn settle(&mut self, answer: Answer, spans: usize, fate: Fate) {
        match answer {
            Answer::Taken => self.fates.extend(vec![fate; spans]),
            Answer::Partly { rejected, why } => {
                self.fates.extend(vec![fate; spans]);
                self.rejected += rejected.min(spans as u64);
                self.remark = Some(why);
            }
            Answer::Later { why, wait } => self.halt = Some(Halt::Later { why, wait }),
            Answer::Misdirected(why) | Answer::Refused(why) => self.halt = Some(Halt::Refuses(why)),
        }
    }
}

/// The second half first: the stack gives the first one.
fn halves(part: &Range<usize>) -> [Range<usize>; 2] {
    let middle = part.start + part.len() / 2;
    [middle..part.end, part.start..middle]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Reply;
    use opentelemetry_proto::tonic::{collector::trace::v1::ExportTraceServiceRequest, trace::v1::Span};
    use std::cell::RefCell;
    use tracegate_core::ids::{Chain, Seq};
    use tracegate_store::{Cursor, Head};

    /// Judges a request by the names of its spans; remembers what it was sent.
    struct Judge {
        rule: fn(&[String]) -> Answer,
        seen: RefCell<Vec<String>>,
    }

    impl Transport for Judge {
        async fn send(&self, request: ExportTraceServiceRequest) -> Reply {
            let spans = request.resource_spans.iter().flat_map(|it| &it.scope_spans);
            let names: Vec<String> = spans
                .flat_map(|it| &it.spans)
                .map(|span| {
                    format!(
                        "{}{}",
                        span.name,
                        if span.attributes.is_empty() { "" } else { "'" }
                    )
                })
                .collect();
            self.seen.borrow_mut().push(names.concat());
            let answer = (self.rule)(&names);
            Reply { answer, date: None }
        }
    }

    fn batch(names: &str) -> Vec<Ready> {
        let ready = |(at, name): (usize, char)| Ready {
            span: Span {
                name: name.to_string(),
                ..Span::default()
            },
            bytes: 1,
            cursor: Cursor {
                head: Head {
                    seq: Seq(at as u64),
                    chain: Chain::from_bytes([0; 16]),
                },
                spans: at as u64,
            },
        };
        names.chars().enumerate().map(ready).collect()
    }

    /// Delivers and returns what was sent, the fates as letters and the halt.
    fn run(names: &str, rule: fn(&[String]) -> Answer) -> (String, String, Option<Halt>) {
        let judge = Judge {
            rule,
            seen: RefCell::default(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let done = runtime.block_on(deliver(&judge, &Resource::default(), &batch(names)));
        let fates = done.fates.iter().map(|fate| match fate {
            Fate::Taken => 't',
            Fate::Cut => 'c',
            Fate::Condemned(_) => 'x',
        });
        let fates = fates.collect();
        (judge.seen.into_inner().join(" "), fates, done.halt)
    }

    fn refuse(yes: bool) -> Answer {
        if yes {
            Answer::Refused("no".to_owned())
        } else {
            Answer::Taken
        }
    }

    #[test]
    fn what_is_to_blame_is_found_by_halves_and_the_rest_arrives_in_order() {
        let poison = |names: &[String]| refuse(names.iter().any(|name| name.starts_with('P')));
        let check = |names: &str, sent: &str, fates: &str| {
            assert_eq!(
                run(names, poison),
                (sent.to_owned(), fates.to_owned(), None),
                "{names}"
            );
        };
        check("abcd", "abcd", "tttt");
        check("abPd", "abPd ab Pd P P' d", "ttxt");
        check("P", "P P'", "x");
        check("PaP", "PaP P P' aP a P P'", "xtx");
    }

    #[test]
    fn a_span_that_is_only_too_large_arrives_shortened() {
        let large = |names: &[String]| refuse(names.iter().any(|name| name == "L"));
        assert_eq!(
            run("aLb", large),
            ("aLb a Lb L L' b".to_owned(), "tct".to_owned(), None)
        );
    }

    #[test]
    fn a_receiver_that_refuses_everything_is_to_blame_itself() {
        let (sent, fates, halt) = run(&"a".repeat(256), |_| refuse(true));
        assert_eq!(
            (fates.as_str(), halt),
            ("xxxxxxxx", Some(Halt::Refuses("no".to_owned())))
        );
        assert!(sent.split(' ').count() < 40, "{sent}");
    }

    #[test]
    fn what_was_taken_before_the_receiver_went_away_counts() {
        let away = |names: &[String]| match names.concat().as_str() {
            "abPd" => Answer::Refused("no".to_owned()),
            "ab" => Answer::Taken,
            _ => Answer::Later {
                why: "gone".to_owned(),
                wait: None,
            },
        };
        let halt = Some(Halt::Later {
            why: "gone".to_owned(),
            wait: None,
        });
        assert_eq!(
            run("abPd", away),
            ("abPd ab Pd".to_owned(), "tt".to_owned(), halt)
        );
    }
}
