//! Tuning spaces: the parameters that a variant leaves open, and one choice of them.

use std::fmt;
use std::str::FromStr;

use rayspin_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// One parameter of a variant and the values that it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// Its name, as in `threads`.
    pub name: &'static str,
    /// The values, in the order in which neighbours differ least.
    pub values: Vec<i64>,
    /// The value without tuning: one of `values`, from the measured default.
    pub default: i64,
}

/// The configurations of a variant: the product of its axes, less those that a constraint leaves out.
#[derive(Clone, Default)]
pub struct Space {
    axes: Vec<Axis>,
    allows: Option<fn(&Config) -> bool>,
}

/// One value for every axis of a space.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Config(Vec<(String, i64)>);

impl Space {
    /// A space without parameters, of one configuration.
    pub fn none() -> Self {
        Self::default()
    }

    /// The space with one more parameter. `default` is taken as a value where `values` lack it.
    pub fn axis(mut self, name: &'static str, values: &[i64], default: i64) -> Self {
        let mut values = values.to_vec();
        if !values.contains(&default) {
            values.push(default);
            values.sort_unstable();
        }
        self.axes.push(Axis { name, values, default });
        self
    }

    /// The space less what `allows` is false for. The default must be allowed.
    pub fn where_(mut self, allows: fn(&Config) -> bool) -> Self {
        self.allows = Some(allows);
        self
    }

    /// The axes.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Whether there is nothing to tune.
    pub fn is_empty(&self) -> bool {
        self.axes.iter().all(|axis| axis.values.len() < 2)
    }

    /// The configuration without tuning.
    pub fn default_config(&self) -> Config {
        Config(self.axes.iter().map(|axis| (axis.name.to_owned(), axis.default)).collect())
    }

    /// Whether `config` has one of the values of every axis, no other names, and is allowed.
    pub fn contains(&self, config: &Config) -> bool {
        config.0.len() == self.axes.len()
            && self.axes.iter().all(|a| config.find(a.name).is_some_and(|v| a.values.contains(&v)))
            && self.allows.is_none_or(|allows| allows(config))
    }

    /// Every configuration, the last axis fastest.
    pub fn configs(&self) -> Vec<Config> {
        let mut configs = vec![Config::default()];
        for axis in &self.axes {
            configs = configs
                .into_iter()
                .flat_map(|config| {
                    axis.values.iter().map(move |&value| {
                        let mut config = config.clone();
                        config.0.push((axis.name.to_owned(), value));
                        config
                    })
                })
                .collect();
        }
        configs.retain(|config| self.allows.is_none_or(|allows| allows(config)));
        configs
    }

    /// The configurations that differ from `config` by one step along one axis.
    pub fn neighbours(&self, config: &Config) -> Vec<Config> {
        let mut near = Vec::new();
        for (i, axis) in self.axes.iter().enumerate() {
            let index = axis.values.iter().position(|&v| Some(v) == config.find(axis.name));
            let Some(index) = index else { continue };
            for next in [index.checked_sub(1), Some(index + 1)].into_iter().flatten() {
                if let Some(&value) = axis.values.get(next) {
                    let mut moved = config.clone();
                    moved.0[i].1 = value;
                    if self.contains(&moved) {
                        near.push(moved);
                    }
                }
            }
        }
        near
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.axes).finish()
    }
}

impl Config {
    /// A configuration from names and values.
    pub fn of(values: &[(&str, i64)]) -> Self {
        Self(values.iter().map(|&(name, value)| (name.to_owned(), value)).collect())
    }

    /// The value of `name`, where there is one.
    pub fn find(&self, name: &str) -> Option<i64> {
        self.0.iter().find(|(n, _)| n == name).map(|&(_, value)| value)
    }

    /// The value of `name`. Errors: none, or one that is not a positive number of 32 bits.
    pub fn get(&self, name: &str) -> Result<u32> {
        let value = self.find(name).ok_or_else(|| {
            Error::value(format!("parameter {name}"), "a value in the configuration", self.to_string())
        })?;
        u32::try_from(value)
            .map_err(|_| Error::value(format!("parameter {name}"), "a number from 0 to 4294967295", value))
    }

    /// The same with another value of `name`. A new name is added.
    pub fn with(mut self, name: &str, value: i64) -> Self {
        match self.0.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
        self
    }

    /// Names and values, in the order of the axes.
    pub fn values(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&parts.join(" "))
    }
}

impl FromStr for Config {
    type Err = Error;

    /// `threads=128 unroll=4`, with spaces or commas between.
    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split([' ', ',']).filter(|part| !part.is_empty());
        let pair = |part: &str| {
            let (name, value) = part.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        parts
            .map(|part| pair(part).ok_or_else(|| Error::value("configuration", "name=number", part)))
            .collect::<Result<_>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        Space::none()
            .axis("threads", &[32, 64, 128], 64)
            .axis("unroll", &[1, 2, 4], 1)
            .where_(|c| c.find("threads").unwrap_or(0) * c.find("unroll").unwrap_or(0) <= 256)
    }

    #[test]
    fn configurations_are_the_product_less_what_is_not_allowed() {
        let space = space();
        let all = space.configs();
        assert_eq!(all.len(), 8);
        assert!(all.iter().all(|c| space.contains(c)));
        assert!(!space.contains(&Config::of(&[("threads", 128), ("unroll", 4)])));
        assert!(!space.contains(&Config::of(&[("threads", 128)])));
        assert!(space.contains(&space.default_config()));
        assert_eq!(Space::none().configs(), [Config::default()]);
        let near = space.neighbours(&Config::of(&[("threads", 128), ("unroll", 2)]));
        assert_eq!(
            near,
            [Config::of(&[("threads", 64), ("unroll", 2)]), Config::of(&[("threads", 128), ("unroll", 1)])]
        );
    }

    #[test]
    fn a_configuration_is_read_as_it_is_printed() {
        for config in space().configs() {
            assert_eq!(config.to_string().parse::<Config>().unwrap(), config);
        }
        assert!("threads".parse::<Config>().is_err());
        assert!("threads=x".parse::<Config>().is_err());
        assert!(Config::of(&[("a", -1)]).get("a").is_err());
    }
}
