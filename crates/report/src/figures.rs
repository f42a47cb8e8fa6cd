//! Durations and counts as people read them.

/// Spells a duration with three figures or so: `41 ms`, `2.45 s`, `14.2 s`, `3 min 05 s`, `2 h 03 min`.
///
/// Cuts instead of rounding, so that a shown duration is never longer than the recorded one.
#[must_use]
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{seconds}.{:02} s", ms % 1000 / 10),
        10_000..60_000 => format!("{seconds}.{} s", ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        3_600_000.. => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Spells a count with a comma between thousands: `10,146`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_counts_are_spelled_as_people_read_them() {
        for (ms, wanted) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1.00 s"),
            (2_459, "2.45 s"),
            (9_999, "9.99 s"),
            (14_200, "14.2 s"),
            (59_999, "59.9 s"),
            (185_000, "3 min 05 s"),
            (7_380_000, "2 h 03 min"),
            (u64::MAX, "5124095576030 h 25 min"),
        ] {
            assert_eq!(duration(ms), wanted);
        }
        for (number, wanted) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), wanted);
        }
    }
}
