//! A list of places in a log that is nearly always empty or of one: without that, the steps of a long log would not fit into memory.

use crate::ids::Seq;
use std::{fmt, ops::Deref, slice};

/// Positions of events, in the order in which they were added; one costs no allocation.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Positions(Held);

#[derive(Clone, PartialEq, Eq, Default)]
enum Held {
    #[default]
    Nothing,
    One(Seq),
    #[expect(
        clippy::box_collection,
        reason = "a boxed vector is one word: five of these lie in every step, and hardly any holds two"
    )]
    Many(Box<Vec<Seq>>),
}

impl Positions {
    /// Adds a position at the end.
    pub fn push(&mut self, seq: Seq) {
        match &mut self.0 {
            Held::Nothing => self.0 = Held::One(seq),
            Held::One(first) => self.0 = Held::Many(Box::new(vec![*first, seq])),
            Held::Many(all) => all.push(seq),
        }
    }
}

impl Deref for Positions {
    type Target = [Seq];

    fn deref(&self) -> &[Seq] {
        match &self.0 {
            Held::Nothing => &[],
            Held::One(seq) => slice::from_ref(seq),
            Held::Many(all) => all,
        }
    }
}

impl FromIterator<Seq> for Positions {
    fn from_iter<I: IntoIterator<Item = Seq>>(seqs: I) -> Self {
        let mut positions = Self::default();
        for seq in seqs {
            positions.push(seq);
        }
        positions
    }
}

impl fmt::Debug for Positions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|seq| seq.0)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_what_was_pushed_and_take_two_words() {
        for count in 0..5 {
            let seqs: Vec<Seq> = (1..=count).map(Seq).collect();
            let positions: Positions = seqs.iter().copied().collect();
            assert_eq!(&*positions, seqs.as_slice());
        }
        assert_eq!(size_of::<Positions>(), 16);
    }
}
