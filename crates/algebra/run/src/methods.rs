//! Methods of reconstruction as values: their names, their tables of parameters, and lists of them. What a
//! method does is the matter of the crate that has it. Corrections of scans and filters of images are listed
//! in the same way.

use std::sync::Arc;

use rayspin_core::{Error, Result};

use crate::{Param, Parameters, Value};

/// What a method is called, and what it computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// The name that commands, records and files use.
    pub name: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
}

/// A parameter that does nothing as the others stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    /// Its name.
    pub name: &'static str,
    /// What it would need.
    pub expected: &'static str,
    /// What is there instead.
    pub found: String,
}

/// A value of a parameter that suits a scan.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The parameter's name.
    pub name: &'static str,
    /// Its value.
    pub value: Value,
    /// Why, in a few words.
    pub reason: String,
}

/// A method that is chosen by its name. [`table!`](crate::table) writes this.
pub trait Described: Parameters {
    /// Its name and what it does.
    fn about(&self) -> About;

    /// Its parameters that do nothing as the others stand.
    fn idle(&self) -> Vec<Idle> {
        Vec::new()
    }

    /// A copy whose parameters can be changed.
    fn copy(&self) -> Box<Self>;

    /// Fails where parameters that were changed do not go together, or one is missing.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// A list of methods, each with the defaults of its parameters. `M` is `dyn` a trait of methods.
#[derive(Debug)]
pub struct Table<M: ?Sized> {
    what: &'static str,
    rows: Vec<Box<M>>,
}

impl<M: Described + ?Sized> Table<M> {
    /// A list. `what` is the word for one of them: `method`, `filter`.
    pub fn new(what: &'static str, rows: Vec<Box<M>>) -> Self {
        Self { what, rows }
    }

    /// Adds a method.
    pub fn push(&mut self, method: Box<M>) {
        self.rows.push(method);
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &M> {
        self.rows.iter().map(|method| &**method)
    }

    /// The method of that name. Errors: none has it.
    pub fn named(&self, name: &str) -> Result<&M> {
        self.iter().find(|method| method.about().name == name).ok_or_else(|| {
            let names: Vec<_> = self.iter().map(|method| method.about().name).collect();
            Error::value(self.what, format!("one of {}", names.join(", ")), name)
        })
    }

    /// The names of the methods for which this holds, `a, b or c`.
    pub fn names(&self, wanted: impl Fn(&M) -> bool) -> String {
        let names: Vec<_> = self.iter().filter(|method| wanted(*method)).map(|m| m.about().name).collect();
        match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => "none".to_owned(),
        }
    }

    /// Every parameter of any method, once, with the methods that have it and the defaults there.
    pub fn params(&self) -> Vec<(Param, Vec<(&'static str, Value)>)> {
        let mut params: Vec<(Param, Vec<(&'static str, Value)>)> = Vec::new();
        for method in self.iter() {
            let name = method.about().name;
            for param in method.table() {
                let default = (name, method.get(param.name).unwrap_or(Value::Nothing));
                match params.iter_mut().find(|(known, _)| known.name == param.name) {
                    Some((_, methods)) => methods.push(default),
                    None => params.push((param, vec![default])),
                }
            }
        }
        params
    }

    /// Fails with the first parameter that two methods describe differently: commands have one option for
    /// both.
    pub fn check_agreement(&self) -> Result<()> {
        let params = self.params();
        for method in self.iter() {
            for param in method.table() {
                let Some((first, _)) = params.iter().find(|(known, _)| known.name == param.name) else {
                    continue;
                };
                let stated = |p: &Param| (p.kind, p.short, p.group, p.help, p.expected);
                if stated(first) != stated(&param) {
                    let what = format!("parameter {} of {}", param.name, method.about().name);
                    return Err(Error::value(what, format!("{first:?}"), format!("{param:?}")));
                }
            }
        }
        Ok(())
    }
}

/// Changes parameters of a copy of a method by name, and checks them.
///
/// Errors: as [`Parameters::set`] and [`Described::check`].
pub fn changed<M: Described + ?Sized>(
    mut copy: Box<M>,
    values: impl IntoIterator<Item = (String, Value)>,
) -> Result<Arc<M>> {
    values.into_iter().try_for_each(|(name, value)| copy.set(&name, value))?;
    copy.check()?;
    Ok(Arc::from(copy))
}

/// Declares the table of all values of one trait that are chosen by their names: methods, corrections,
/// filters.
///
/// `called` is the word for one of them in errors. The trait has a function `about`, and as a supertrait the
/// one that `copied by` names. The macro writes that supertrait, the [`Described`](crate::Described) of the
/// trait, a function `with`, and the table. The table lists types made by [`params!`](crate::params). `idle
/// by` and `checked by` name functions of the trait for [`Described::idle`](crate::Described::idle) and
/// [`Described::check`](crate::Described::check).
///
/// ```
/// use rayspin_run::{About, Param, Parameters, Value};
///
/// /// A way to move.
/// pub trait Gait: Parameters + CopyGait {
///     /// Its name and what it does.
///     fn about(&self) -> About;
/// }
/// rayspin_run::params! {
///     /// A few steps.
///     pub struct Walk {
///         /// Steps.
///         steps: usize = 3 => Param::new("Walking", "How many steps"),
///     }
/// }
/// impl Gait for Walk {
///     fn about(&self) -> About {
///         About { name: "walk", help: "A few steps" }
///     }
/// }
/// rayspin_run::table! {
///     /// All gaits.
///     pub struct Gaits of dyn Gait, called "gait", copied by CopyGait: Walk;
/// }
/// let long = with(Gaits::default().named("walk")?, [("steps".to_owned(), Value::Count(9))])?;
/// assert_eq!(long.get("steps"), Some(Value::Count(9)));
/// let none = Gaits::default().named("fly").unwrap_err();
/// assert_eq!(none.to_string(), "gait: expected one of walk, found fly");
/// # rayspin_core::Result::<()>::Ok(())
/// ```
#[macro_export]
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub struct $table:ident of dyn $row:ident, called $what:literal, copied by $copy:ident
        $(, idle by $idle:path)? $(, checked by $check:path)?:
        $($own:ident),* $(,)?;
    ) => {
        /// Copies a value behind a pointer. Every value that can be cloned has it.
        pub trait $copy {
            /// A copy whose parameters can be changed.
            fn copy(&self) -> Box<dyn $row>;
        }

        impl<T: $row + Clone + 'static> $copy for T {
            fn copy(&self) -> Box<dyn $row> {
                Box::new(self.clone())
            }
        }

        impl $crate::Described for dyn $row {
            fn about(&self) -> $crate::About {
                $row::about(self)
            }

            $(fn idle(&self) -> Vec<$crate::Idle> {
                $idle(self)
            })?

            fn copy(&self) -> Box<Self> {
                $copy::copy(self)
            }

            $(fn check(&self) -> $crate::core::Result<()> {
                $check(self)
            })?
        }

        /// Copies one, changes its parameters by name, and checks them.
        ///
        /// Errors: as [`Parameters::set`](rayspin_run::Parameters::set); values that do not go together,
        /// where the table checks them.
        pub fn with(
            one: &dyn $row,
            values: impl IntoIterator<Item = (String, $crate::Value)>,
        ) -> $crate::core::Result<std::sync::Arc<dyn $row>> {
            $crate::changed(one.copy(), values)
        }

        $(#[$meta])*
        #[derive(Debug)]
        pub struct $table($crate::Table<dyn $row>);

        impl Default for $table {
            fn default() -> Self {
                Self($crate::Table::new($what, vec![$(Box::new($own::default())),*]))
            }
        }

        impl std::ops::Deref for $table {
            type Target = $crate::Table<dyn $row>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl $table {
            /// With one more.
            #[must_use]
            pub fn with(mut self, one: impl $row + 'static) -> Self {
                self.0.push(Box::new(one));
                self
            }
        }
    };
}
