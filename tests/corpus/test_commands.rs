//! Labelled command lines, judged by the real recogniser: is it a test run, does it mask its exit code, which scope.

use super::{Tally, cases};
use serde::Deserialize;
use tracegate_core::validation::{Scope, recognise};

#[derive(Deserialize)]
struct CommandCase {
    id: String,
    command: String,
    is_test: bool,
    masks_exit_code: bool,
    scope: Option<Scope>,
}

#[derive(Default)]
struct Score {
    hit: u32,
    false_alarm: u32,
    missed: u32,
}

impl Score {
    fn add(&mut self, wanted: bool, got: bool) {
        match (wanted, got) {
            (true, true) => self.hit += 1,
            (false, true) => self.false_alarm += 1,
            (true, false) => self.missed += 1,
            (false, false) => {}
        }
    }

    fn precision(&self) -> f64 {
        f64::from(self.hit) / f64::from((self.hit + self.false_alarm).max(1))
    }

    fn recall(&self) -> f64 {
        f64::from(self.hit) / f64::from((self.hit + self.missed).max(1))
    }

    fn f1(&self) -> f64 {
        2.0 * self.precision() * self.recall() / (self.precision() + self.recall()).max(f64::EPSILON)
    }
}

#[test]
fn test_commands_are_recognised_with_their_masks_and_scopes() {
    let Some(cases) = cases::<CommandCase>("test_commands.dev.jsonl") else {
        return;
    };
    let (mut is_test, mut masks) = (Score::default(), Score::default());
    let (mut scopes, mut scoped) = (0_u32, 0_u32);
    let mut tally = Tally::new("test_commands");
    for case in &cases {
        let got = recognise(&case.command);
        is_test.add(case.is_test, got.is_some());
        masks.add(case.masks_exit_code, got.as_ref().is_some_and(|got| got.masked));
        let mut wrong = Vec::new();
        if got.is_some() != case.is_test {
            wrong.push(format!("is_test {}", got.is_some()));
        }
        if got.as_ref().is_some_and(|got| got.masked) != case.masks_exit_code {
            wrong.push(format!("masks {}", !case.masks_exit_code));
        }
        if let Some(scope) = case.scope {
            scoped += 1;
            let same = got.as_ref().map(|got| got.scope) == Some(scope);
            scopes += u32::from(same);
            if !same {
                wrong.push(format!("scope {:?}", got.as_ref().map(|got| got.scope)));
            }
        }
        let result = if wrong.is_empty() {
            Ok(())
        } else {
            Err(format!("`{}`: {}", case.command, wrong.join(", ")))
        };
        tally.count(&case.id, result);
    }
    tally.print();
    let scope = f64::from(scopes) / f64::from(scoped.max(1));
    println!(
        "  is_test P {:.3} R {:.3}; masks F1 {:.3}; scope {scope:.3}",
        is_test.precision(),
        is_test.recall(),
        masks.f1()
    );
    assert!(is_test.precision() >= 0.99 && is_test.recall() >= 0.97, "is_test");
    assert!(masks.f1() >= 0.95, "masks");
    assert!(scope >= 0.90, "scope");
}
