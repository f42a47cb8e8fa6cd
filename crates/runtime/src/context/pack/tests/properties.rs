//! What must hold for every workspace, goal, history and budget.

use super::*;
use proptest::prelude::*;
use tracegate_core::context_report::ItemKind;

prop_compose! {
    fn workspace()(files in proptest::collection::btree_map(
        "(src/|test/|a/|a/b/)?((x|y|z|x_y|index)(\\.test|_test)?\\.(ts|go|py)|package\\.json|README\\.md|yarn\\.lock)",
        "([a-z]{0,40}\n){0,25}|测{0,90}",
        0..14,
    )) -> Memory {
        Memory(files)
    }
}

fn some_paths() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(
        "(src/|test/|a/)?(x|y|x_y|index)(\\.test|_test)?\\.(ts|go|py)|yarn\\.lock|\\.\\./x",
        0..5,
    )
}

/// Paths that may or may not be there, and some that are: `picks` count into the workspace.
fn paths_of(memory: &Memory, free: Vec<String>, picks: &[usize]) -> Vec<String> {
    let there = picks
        .iter()
        .filter_map(|pick| memory.0.keys().nth(pick % memory.0.len().max(1)));
    free.into_iter().chain(there.cloned()).collect()
}

fn some_picks() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0_usize..14, 0..4)
}

prop_compose! {
    fn situation()(
        memory in workspace(),
        budget in prop_oneof![0_u64..300, 0_u64..6000, Just(u64::MAX)],
        goal in (any::<bool>(), some_paths(), prop_oneof![Just(vec![]), some_picks()]),
        reads in (some_paths(), some_picks()),
        writes in (some_paths(), some_picks()),
        red in (some_paths(), some_picks()),
        on in any::<bool>(),
    ) -> (Memory, u64, Goal, Vec<Touched>, Vec<String>, Linking) {
        let named_paths = paths_of(&memory, goal.1, &goal.2);
        let goal = Goal { mentions_tests: goal.0, named_paths, ..Goal::read("") };
        let reads = paths_of(&memory, reads.0, &reads.1);
        let reads = reads.iter().zip(1..).map(|(path, step)| touched(path, How::Read, step));
        let writes = paths_of(&memory, writes.0, &writes.1);
        let writes = writes.iter().zip(2..).map(|(path, step)| touched(path, How::Written, step));
        let red = paths_of(&memory, red.0, &red.1);
        (memory, budget, goal, reads.chain(writes).collect(), red, if on { Linking::On } else { Linking::Off })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_budget_holds_and_every_item_is_accounted_for(
        (memory, budget, goal, touched, red, linking) in situation()
    ) {
        let red: Vec<&str> = red.iter().map(String::as_str).collect();
        let built = Case { goal, budget, linking, touched: &touched, red_files: &red, step: 9 }.build(&memory);
        let report = &built.report;
        prop_assert!(report.used <= budget);
        prop_assert!(crate::context::estimate_tokens(&built.text) <= report.used);
        prop_assert_eq!(report.used, report.included.iter().map(|item| item.tokens).sum::<u64>());
        let included = report.included.iter().map(|item| &item.path);
        let paths: BTreeSet<&String> = included.chain(report.dropped.iter().map(|item| &item.path)).collect();
        prop_assert_eq!(paths.len() as u64, report.considered);
        prop_assert_eq!(paths.len(), report.included.len() + report.dropped.len());
        prop_assert!(touched.iter().all(|touched| paths.contains(&touched.path)), "touched and not considered");
        for link in &report.links {
            prop_assert!(link.tests.iter().all(|test| paths.contains(&test.path)), "linked and not considered");
        }
        let out_of_room = |item: &&Dropped| {
            item.tier <= Tier::StrongLink && matches!(item.reason, DropReason::BudgetExhausted | DropReason::ItemCap)
        };
        if report.dropped.iter().any(|item| out_of_room(&item)) {
            prop_assert!(report.included.iter().all(|item| item.tier <= Tier::StrongLink), "{report:?}");
        }
        if linking == Linking::Off {
            let kinds = [ItemKind::LinkedTest, ItemKind::RedOutput];
            prop_assert!(report.included.iter().all(|item| !kinds.contains(&item.kind)), "{report:?}");
        }
        prop_assert!(report.included.iter().all(|item| !item.reasons.is_empty()));
    }

    #[test]
    fn the_order_of_listing_and_touching_changes_no_byte(
        (memory, budget, goal, mut touched, red, linking) in situation(), cut in 0_usize..14
    ) {
        let red: Vec<&str> = red.iter().map(String::as_str).collect();
        let build = |touched: &[Touched], inventory: &Inventory| {
            let built = Case { goal: goal.clone(), budget, linking, touched, red_files: &red, step: 9 }.build_from(&memory, inventory);
            (built.text, serde_json::to_string(&built.report).unwrap())
        };
        let mut files: Vec<(String, u64)> = memory.0.iter().map(|(path, text)| (path.clone(), text.len() as u64)).collect();
        let one = build(&touched, &Inventory::of(files.clone(), []));
        files.reverse();
        let cut = cut.min(files.len());
        files.rotate_left(cut);
        touched.reverse();
        prop_assert_eq!(one, build(&touched, &Inventory::of(files, [])));
    }

    #[test]
    fn without_words_of_tests_in_the_goal_no_link_is_a_reason(
        (memory, budget, goal, touched, red, linking) in situation()
    ) {
        let red: Vec<&str> = red.iter().map(String::as_str).collect();
        let goal = Goal { mentions_tests: false, ..goal };
        let built = Case { goal, budget, linking, touched: &touched, red_files: &red, step: 9 }.build(&memory);
        for item in &built.report.included {
            prop_assert!(item.tier != Tier::StrongLink && item.tier != Tier::MediumLink, "{item:?}");
            prop_assert!(item.reasons.iter().all(|reason| reason.code != ReasonCode::LinkedTest), "{item:?}");
        }
    }
}
