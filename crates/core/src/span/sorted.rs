//! Attributes of a span: few, unique, in the order of their keys. A sorted vector: a tree of so few entries costs twice the time.

use super::record::Value;
use std::borrow::Cow;

/// A key. Nearly all are constants of `names`.
type Key = Cow<'static, str>;
/// Room for the attributes of most spans, so that it is asked for once; more than a kilobyte of it would take the slow way of the
/// allocator.
const ROOM: usize = 18;

/// Attributes: unique keys in a fixed order, so that two exports agree byte for byte.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attributes(Vec<(Key, Value)>);

impl Attributes {
    /// Sets an attribute; what stood there before is gone.
    pub fn insert(&mut self, key: Key, value: Value) {
        if self.0.capacity() == 0 {
            self.0.reserve(ROOM);
        }
        match self.place(&key) {
            Ok(at) => {
                if let Some(slot) = self.0.get_mut(at) {
                    slot.1 = value;
                }
            }
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    /// Returns the value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        let at = self.place(key).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    /// Tells whether there is a value of `key`.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.place(key).is_ok()
    }

    /// Returns the keys in their order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_ref())
    }

    /// Returns keys and values in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), value))
    }

    /// Returns how many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn place(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.as_ref().cmp(key))
    }
}

impl FromIterator<(Key, Value)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (Key, Value)>>(pairs: I) -> Self {
        let mut attributes = Self::default();
        for (key, value) in pairs {
            attributes.insert(key, value);
        }
        attributes
    }
}

impl<const N: usize> From<[(Key, Value); N]> for Attributes {
    fn from(pairs: [(Key, Value); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl IntoIterator for Attributes {
    type Item = (Key, Value);
    type IntoIter = std::vec::IntoIter<(Key, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_unique_and_sorted_and_the_last_value_stays() {
        let pairs = [("b", 1), ("a", 2), ("c", 3), ("b", 4)];
        let attributes: Attributes = pairs
            .into_iter()
            .map(|(key, number)| (Key::from(key), Value::Int(number)))
            .collect();
        let found: Vec<_> = attributes.iter().collect();
        assert_eq!(
            found,
            [
                ("a", &Value::Int(2)),
                ("b", &Value::Int(4)),
                ("c", &Value::Int(3))
            ]
        );
        assert_eq!((attributes.len(), attributes.get("d")), (3, None));
    }
}
