//! Numbers that may be infinite, as JSON can hold them: a number, or the text `inf` or `-inf`.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(f64),
    Text(String),
}

pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() { value.serialize(serializer) } else { value.to_string().serialize(serializer) }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    match NumberOrText::deserialize(deserializer)? {
        NumberOrText::Number(value) => Ok(value),
        NumberOrText::Text(text) => text
            .parse()
            .map_err(|_| D::Error::custom(format!("expected a number, `inf` or `-inf`, found `{text}`"))),
    }
}
