//! Rows under titles for a terminal: every column as wide as it needs, but for one that takes what the others leave.

use crate::terminal::{Width, cell, width_of};

/// Columns between two columns.
const GAP: usize = 2;

/// Returns the line of titles and one line a row, none wider than `width`; column `elastic` is cut where there is no room for it.
pub(crate) fn table<const COLUMNS: usize>(
    titles: [&str; COLUMNS],
    elastic: usize,
    rows: &[[String; COLUMNS]],
    width: Width,
) -> Vec<String> {
    let widest = |column: usize, title: &str| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|text| width_of(text)).fold(title.len(), usize::max)
    };
    let mut columns: Vec<usize> = titles
        .iter()
        .enumerate()
        .map(|(column, title)| widest(column, title))
        .collect();
    // The elastic column takes what the others leave, and no more than it needs.
    let others: usize = columns.iter().sum::<usize>() - columns.get(elastic).copied().unwrap_or(0);
    let title = titles.get(elastic).map_or(0, |title| title.len());
    let room = width.beside(others + GAP * COLUMNS.saturating_sub(1)).max(title);
    if let Some(elastic) = columns.get_mut(elastic) {
        *elastic = (*elastic).min(room);
    }
    let titles = titles.map(str::to_owned);
    std::iter::once(&titles)
        .chain(rows)
        .map(|row| {
            let cells: Vec<String> = row
                .iter()
                .zip(&columns)
                .map(|(text, columns)| cell(text, *columns))
                .collect();
            bounded(cells.join(&" ".repeat(GAP)).trim_end(), width)
        })
        .collect()
}

/// Cuts a row of a terminal too narrow for the table; its gaps must stay, so it is cut by columns and not read anew.
fn bounded(row: &str, width: Width) -> String {
    let mut line = String::new();
    for c in row.chars() {
        line.push(c);
        if width_of(&line) > width.columns() {
            line.pop();
            break;
        }
    }
    line.truncate(line.trim_end().len());
    line
}
