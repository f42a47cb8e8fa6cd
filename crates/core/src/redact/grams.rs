//! A set of short byte strings that is asked at nearly every place of a text and nearly always says no.
//!
//! The answer comes from one word of a bitmap that stays in the fastest cache, and no answer waits for the one before. An automaton
//! waits at each byte, and with hundreds of keys its table does not fit: it was ten times slower.

/// 2^11 words of 64 bits: 16 KiB, half of a usual first-level cache.
const LOG: u32 = 11;
const WORDS: usize = 1 << LOG;

/// Spreads grams over the words and bits.
const SPREAD: u32 = 0x85eb_ca6b;

/// A gram that is in the set, and where its items stand in the list.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    gram: u32,
    first: usize,
    count: usize,
}

/// Grams as numbers, each with the items that it announces.
#[derive(Debug)]
pub(super) struct Grams<T> {
    bits: Box<[u64; WORDS]>,
    /// A hash table with open addressing; a slot without items is empty.
    slots: Vec<Slot>,
    items: Vec<T>,
}

impl<T: Copy> Grams<T> {
    pub(super) fn new(mut entries: Vec<(u32, T)>) -> Self {
        entries.sort_by_key(|(gram, _)| *gram);
        let mut set = Self {
            bits: Box::new([0; WORDS]),
            slots: vec![Slot::default(); (2 * entries.len() + 1).next_power_of_two()],
            items: entries.iter().map(|(_, item)| *item).collect(),
        };
        let mut first = 0;
        for group in entries.chunk_by(|(one, _), (other, _)| one == other) {
            if let Some((gram, _)) = group.first() {
                set.insert(Slot {
                    gram: *gram,
                    first,
                    count: group.len(),
                });
            }
            first += group.len();
        }
        set
    }

    fn insert(&mut self, slot: Slot) {
        let (word, one, other) = place(slot.gram);
        if let Some(word) = self.bits.get_mut(word) {
            *word |= 1 << one | 1 << other;
        }
        let mut at = self.home(slot.gram);
        while let Some(place) = self.slots.get_mut(at) {
            if place.count == 0 {
                *place = slot;
                return;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Where the search for a gram begins in the table, whose length is a power of two. Taken from the upper half of a wide product:
    /// grams of one short key differ in their last byte alone, which the lower bits do not see.
    fn home(&self, gram: u32) -> usize {
        let hash = u64::from(gram).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        usize::try_from(hash).unwrap_or_default() & (self.slots.len() - 1)
    }

    /// Returns an even number if the gram is certainly not in the set.
    #[inline]
    pub(super) fn may_hold(&self, gram: u32) -> u64 {
        let (word, one, other) = place(gram);
        let word = self.bits.get(word).copied().unwrap_or_default();
        (word >> one) & (word >> other)
    }

    /// Returns the items of a gram.
    pub(super) fn of(&self, gram: u32) -> &[T] {
        let mut at = self.home(gram);
        // At least half of the slots are empty, so this ends.
        while let Some(slot) = self.slots.get(at).filter(|slot| slot.count > 0) {
            if slot.gram == gram {
                return self
                    .items
                    .get(slot.first..slot.first + slot.count)
                    .unwrap_or_default();
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        &[]
    }
}

/// The word of a gram and its two bits in it. With one bit, the frequent grams of a language hit those of other grams too often.
#[inline]
fn place(gram: u32) -> (usize, u32, u32) {
    let hash = gram.wrapping_mul(SPREAD);
    let word = usize::try_from(hash >> (32 - LOG)).unwrap_or_default();
    (word, (hash >> 15) & 63, (hash >> 9) & 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gram_leads_to_its_items_and_no_other_gram_to_any() {
        let entries: Vec<_> = (0..3000_u32)
            .map(|number| (number * number % 4001, number))
            .collect();
        let grams = Grams::new(entries.clone());
        for gram in 0..5000 {
            let wanted: Vec<_> = entries
                .iter()
                .filter(|(one, _)| *one == gram)
                .map(|(_, item)| *item)
                .collect();
            assert_eq!(grams.of(gram), wanted, "{gram}");
            assert!(wanted.is_empty() || grams.may_hold(gram) & 1 == 1, "{gram}");
        }
        assert!(
            (0..100_000)
                .filter(|gram| grams.may_hold(gram + 10_000) & 1 == 1)
                .count()
                < 4000
        );
        assert!(Grams::<u8>::new(Vec::new()).of(7).is_empty());
    }
}
