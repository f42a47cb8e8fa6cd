//! One pass: look at the input in each of its readings, merge what the layers found, write the placeholders.

use super::RedactionKey;
use super::anchors::{ANCHORS, Hit, Row};
use super::findings::Findings;
use super::known::{Known, TooManyValues};
use super::names;
use super::rules::{self, FORMS, How, RULES, Rule, Token};
use super::scan::Scan;
use super::structural;
use super::value;
use super::view::{self, Reading, View, Wide};
use regex::bytes::Regex;

/// The redactor cannot vouch for its result; the payload must not be written.
#[derive(Debug)]
pub(super) struct Failed;

/// Passes until nothing is found any more. One pass and one that confirms it is the rule; more mean that placeholders made new
/// values out of their surroundings, which cannot go on for long because each replaces bytes by an opaque one.
const PASSES: usize = 6;

/// Which layers look at a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layers {
    /// Registered values, shapes, names.
    All,
    /// Registered values and shapes: for keys of objects, which a name never makes secret.
    WithoutNames,
}

/// The layer that found a span, in the order in which they name a merged one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    Known,
    Shape,
    Name,
}

/// A secret in the original.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
    layer: Layer,
    rule: &'static str,
    tag: String,
}

/// The rules with the user's values and key.
pub(super) struct Engine {
    pub(super) key: RedactionKey,
    pub(super) known: Known,
    /// Do everything without look ahead, as the reference for what the look ahead must not change.
    #[cfg(test)]
    pub(super) exact: bool,
}

impl Engine {
    /// Redacts until a further pass finds nothing, so that the result is a fixed point. `None` means that nothing was found.
    pub(super) fn settle(&self, input: &[u8], layers: Layers) -> Result<Option<(Vec<u8>, Findings)>, Failed> {
        let Some((mut output, mut findings)) = self.pass(input, layers)? else {
            return Ok(None);
        };
        for _ in 1..PASSES {
            match self.pass(&output, layers)? {
                None => return Ok(Some((output, findings))),
                Some((next, more)) => {
                    output = next;
                    findings.merge(&more);
                }
            }
        }
        Err(Failed)
    }

    /// Redacts once.
    pub(super) fn pass(&self, input: &[u8], layers: Layers) -> Result<Option<(Vec<u8>, Findings)>, Failed> {
        let plain = View::new(input, Reading::Plain, rules::is_rule);
        let mut spans = Vec::new();
        self.look(&plain, layers, &mut spans)?;
        if plain.wide != Wide::No || view::has_escape(input) {
            let unescaped = View::new(input, Reading::Unescaped, rules::is_rule);
            if unescaped.decoded {
                self.look(&unescaped, layers, &mut spans)?;
            }
        }
        if spans.is_empty() {
            return Ok(None);
        }
        if plain.wide == Wide::No {
            for span in &mut spans {
                // A span must not begin in the middle of an escape, or what remains of it changes the next character.
                let head = input.get(..span.start).unwrap_or_default();
                span.start -= head.iter().rev().take_while(|byte| **byte == b'\\').count();
            }
        }
        Ok(Some(write(input, &merge(spans), plain.wide)))
    }

    /// The placeholder of a secret.
    pub(super) fn placeholder(&self, rule: &str, secret: &[u8]) -> String {
        format!("[REDACTED:{rule}:{}]", self.tag(secret))
    }

    fn tag(&self, secret: &[u8]) -> String {
        blake3::keyed_hash(self.key.bytes(), secret)
            .to_hex()
            .as_str()
            .chars()
            .take(6)
            .collect()
    }

    fn look(&self, view: &View<'_>, layers: Layers, spans: &mut Vec<Span>) -> Result<(), Failed> {
        let bytes = view.bytes.as_ref();
        let mut push = |start: usize, end: usize, layer: Layer, rule: &'static str, secret: &[u8]| {
            if let Some((start, end)) = view.original(start, end) {
                spans.push(Span {
                    start,
                    end,
                    layer,
                    rule,
                    tag: self.tag(secret),
                });
            }
        };
        let mut push_known = |start, end, owner| {
            let value = self.known.value(owner).as_bytes();
            push(start, end, Layer::Known, rules::KNOWN, value);
        };
        self.search_known(bytes, &mut push_known).map_err(|_| Failed)?;
        let forms = FORMS.as_ref().ok_or(Failed)?;
        let mut scan = Scan::new(view);
        // Names speak after shapes, whatever the order in the text.
        let mut named = Vec::new();
        let mut found = Vec::new();
        let (mut parsed, mut consumed) = (0, 0);
        self.walk(bytes, |hit| match hit.row {
            Row::Shape(row) => {
                let Some(rule) = RULES.get(row) else {
                    return;
                };
                let secret = match rule.how {
                    How::Token(token) => {
                        let form = forms.get(row).and_then(Option::as_ref);
                        apply(&mut scan, rule, &token, form, hit.start, hit.end)
                    }
                    // What a parser consumed is not parsed again: its input may be long.
                    How::Parser(_) | How::Context(_) if hit.start < parsed => None,
                    How::Parser(parser) | How::Context(parser) => {
                        let secret = parser(&mut scan, hit.start, hit.end);
                        parsed = secret.map_or(parsed, |(_, end)| end);
                        secret
                    }
                };
                let layer = match rule.how {
                    How::Token(_) | How::Parser(_) => Layer::Shape,
                    How::Context(_) => Layer::Name,
                };
                if let Some((start, end)) = secret {
                    push(start, end, layer, rule.id, scan.cut(start, end));
                }
            }
            // Inside a value that was found nothing needs to be found again: `password=password=…` stays linear.
            Row::Name(_) if layers == Layers::WithoutNames || hit.start < consumed => {}
            Row::Name(row) => {
                names::values(&mut scan, row, hit.start, hit.end, &mut found);
                for (start, end, rule) in found.drain(..) {
                    consumed = consumed.max(end);
                    named.push((start, end, rule));
                }
            }
        });
        for (start, end, rule) in named {
            push(start, end, Layer::Name, rule, scan.cut(start, end));
        }
        Ok(())
    }

    /// Gives the occurrences of keys to `take`.
    #[cfg_attr(
        not(test),
        expect(clippy::unused_self, reason = "tests may ask for the exact engine")
    )]
    fn walk(&self, text: &[u8], take: impl FnMut(Hit)) {
        #[cfg(test)]
        if self.exact {
            return super::exact::walk(text, take);
        }
        ANCHORS.walk(text, take);
    }

    /// Gives the occurrences of registered values to `take`.
    fn search_known(&self, text: &[u8], take: impl FnMut(usize, usize, usize)) -> Result<(), TooManyValues> {
        #[cfg(test)]
        if self.exact {
            return self.known.search_all(text, take);
        }
        self.known.search(text, take)
    }
}

/// Judges one token whose key stands at `start..end`.
fn apply(
    scan: &mut Scan<'_>,
    rule: &Rule,
    token: &Token,
    form: Option<&Regex>,
    start: usize,
    end: usize,
) -> Option<(usize, usize)> {
    let (first, body) = match token.behind {
        None => (start, end),
        Some((set, least, most)) => {
            let length = scan.run_back(set, start, most);
            (length >= least).then_some((start - length, end))?
        }
    };
    // A long token behind a prefix with a separator is one wherever it stands: something may have been glued to it.
    let certain = token.keep_key || (!token.strict && token.min >= 30 && rule.key.contains(['_', '-']));
    if scan.inside_base64(first) || !(certain || scan.boundary(first, token.strict)) {
        return None;
    }
    let stop = scan.run_end(token.body, body);
    let stop = structural::trimmed(scan, body, stop);
    let length = stop - body;
    if length < token.min || length > token.max || !value::random_body(scan.cut(body, stop)) {
        return None;
    }
    if token.max != usize::MAX
        && matches!(scan.at(stop), b'_' | b'-' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9')
    {
        return None;
    }
    if token.form.is_some() && !form.is_some_and(|form| form.is_match(scan.window(first, 128))) {
        return None;
    }
    Some((if token.keep_key { body } else { first }, stop))
}

/// Unites spans that overlap. The name and tag of the union come from the layer that knows most and covers at least half of it.
fn merge(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end), span.layer));
    let mut merged: Vec<Span> = Vec::new();
    let mut group: Vec<Span> = Vec::new();
    let mut end = 0;
    for span in spans {
        if span.start >= end && !group.is_empty() {
            merged.extend(union(&group));
            group.clear();
        }
        end = end.max(span.end);
        group.push(span);
    }
    merged.extend(union(&group));
    merged
}

fn union(group: &[Span]) -> Option<Span> {
    let start = group.iter().map(|span| span.start).min()?;
    let end = group.iter().map(|span| span.end).max()?;
    let covers = |span: &&Span| (span.end - span.start) * 2 >= end - start;
    let length = |span: &Span| span.end - span.start;
    let speaker = group
        .iter()
        .filter(covers)
        .min_by_key(|span| (span.layer, std::cmp::Reverse(length(span))))
        .or_else(|| group.iter().max_by_key(|span| length(span)))?;
    Some(Span {
        start,
        end,
        ..speaker.clone()
    })
}

fn write(input: &[u8], spans: &[Span], wide: Wide) -> (Vec<u8>, Findings) {
    let mut findings = Findings::empty();
    let mut output = Vec::with_capacity(input.len());
    let mut copied = 0;
    let mut numbers = BareNumbers::new(input);
    for span in spans {
        output.extend_from_slice(input.get(copied..span.start).unwrap_or_default());
        copied = span.end;
        findings.count(span.rule);
        let mut text = format!("[REDACTED:{}:{}]", span.rule, span.tag);
        if span.layer == Layer::Known && wide == Wide::No && numbers.is_bare(span.start, span.end) {
            text = format!("\"{text}\"");
        }
        match wide {
            Wide::No => output.extend_from_slice(text.as_bytes()),
            Wide::Little => output.extend(text.bytes().flat_map(|byte| [byte, 0])),
            Wide::Big => output.extend(text.bytes().flat_map(|byte| [0, byte])),
        }
    }
    output.extend_from_slice(input.get(copied..).unwrap_or_default());
    (output, findings)
}

/// Finds out whether a span is a whole number of a JSON document: its placeholder needs quotes, or JSON would not stay JSON.
struct BareNumbers<'a> {
    input: &'a [u8],
    /// The document (the whole input, or else one line) that was parsed last: start, end, whether it is JSON.
    document: Option<(usize, usize, bool)>,
    /// How far strings have been followed, and whether that place is inside one.
    at: usize,
    in_string: bool,
}

impl<'a> BareNumbers<'a> {
    const fn new(input: &'a [u8]) -> Self {
        Self {
            input,
            document: None,
            at: 0,
            in_string: false,
        }
    }

    /// Answers for spans in ascending order.
    fn is_bare(&mut self, start: usize, end: usize) -> bool {
        let byte = |offset: Option<usize>| {
            offset
                .and_then(|offset| self.input.get(offset))
                .copied()
                .unwrap_or(b' ')
        };
        let number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E');
        let span = self.input.get(start..end).unwrap_or_default();
        if !span.iter().all(|byte| number(*byte))
            || number(byte(start.checked_sub(1)))
            || number(byte(Some(end)))
        {
            return false;
        }
        self.enter(start) && !self.string_at(start)
    }

    /// Makes the document around `start` the current one and says whether it is JSON.
    fn enter(&mut self, start: usize) -> bool {
        if let Some((from, to, json)) = self.document
            && (from..to).contains(&start)
        {
            return json;
        }
        // A text that is nothing but the number is not a document: it may be a string's content.
        let json = |text: &[u8]| {
            matches!(text.trim_ascii_start().first(), Some(b'{' | b'['))
                && serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
        };
        let mut document = (0, self.input.len(), false);
        if self.document.is_none() {
            document.2 = json(self.input);
        }
        if !document.2 {
            let (head, tail) = self.input.split_at_checked(start).unwrap_or_default();
            let from = head
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |newline| newline + 1);
            let to = tail
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(self.input.len(), |newline| start + newline);
            document = (from, to, self.input.get(from..to).is_some_and(json));
        }
        self.document = Some(document);
        (self.at, self.in_string) = (document.0, false);
        document.2
    }

    fn string_at(&mut self, offset: usize) -> bool {
        let mut escaped = false;
        for byte in self.input.get(self.at..offset).unwrap_or_default() {
            match byte {
                b'\\' if self.in_string => escaped = !escaped,
                b'"' if !escaped => self.in_string = !self.in_string,
                _ => escaped = false,
            }
        }
        self.at = offset;
        self.in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: usize, end: usize, layer: Layer, rule: &'static str) -> Span {
        Span {
            start,
            end,
            layer,
            rule,
            tag: format!("{start:03}{end:03}"),
        }
    }

    #[test]
    fn spans_that_overlap_become_one_and_neighbours_stay_two() {
        let spans = vec![
            span(20, 30, Layer::Name, "c"),
            span(0, 6, Layer::Shape, "a"),
            span(4, 10, Layer::Known, "b"),
            span(10, 12, Layer::Shape, "d"),
            span(22, 24, Layer::Known, "e"),
        ];
        let found: Vec<_> = merge(spans)
            .into_iter()
            .map(|span| (span.start, span.end, span.rule, span.tag))
            .collect();
        assert_eq!(
            found,
            [
                (0, 10, "b", "004010".to_owned()),
                (10, 12, "d", "010012".to_owned()),
                (20, 30, "c", "020030".to_owned())
            ]
        );
    }
}
