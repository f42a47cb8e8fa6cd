//! The known name that a misspelt one was meant to be.

/// Returns advice such as ``did you mean `effect`?``, if a known name is close enough to be a slip.
pub(crate) fn did_you_mean(found: &str, known: &[&str]) -> Option<String> {
    let limit = if found.chars().count() <= 4 { 1 } else { 2 };
    known
        .iter()
        .map(|name| (distance(found, name), name))
        .filter(|(distance, name)| *distance <= limit || name.starts_with(found) || found.starts_with(**name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| format!("did you mean `{name}`?"))
}

/// Edits (insert, delete, replace, swap neighbours) between two short words; long ones are never close.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(40).collect();
    let right: Vec<char> = right.chars().take(40).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, found) in left.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, wanted) in right.iter().enumerate() {
            let at = |cells: &[usize], index: usize| cells.get(index).copied().unwrap_or(usize::MAX / 2);
            let replace = at(&last, column) + usize::from(found != wanted);
            let mut best = replace.min(at(&last, column + 1) + 1).min(at(&line, column) + 1);
            let swapped = row > 0
                && column > 0
                && left.get(row - 1) == Some(wanted)
                && right.get(column - 1) == Some(found);
            if swapped {
                best = best.min(at(&before, column - 1) + 1);
            }
            line.push(best);
        }
        before = std::mem::replace(&mut last, line);
    }
    last.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_gets_a_suggestion_and_a_stranger_none() {
        for (found, expected) in [
            ("efect", Some("did you mean `effect`?")),
            ("effcet", Some("did you mean `effect`?")),
            ("idd", Some("did you mean `id`?")),
            ("banana", None),
        ] {
            assert_eq!(
                did_you_mean(found, &["effect", "id"]).as_deref(),
                expected,
                "{found}"
            );
        }
    }
}
