//! `Debug` of types that hold secrets, or more data than a log should have.

/// Implements `Debug` for a type and shows only the named fields, so that a field that is added later stays hidden.
///
/// ```
/// struct Login {
///     user: String,
///     password: String,
/// }
/// sandyard_core::debug_fields!(Login: user);
///
/// let (user, password) = ("ann".to_owned(), "secret".to_owned());
/// let login = Login { user, password };
/// assert_eq!(format!("{login:?}"), r#"Login { user: "ann", .. }"#);
/// # assert_eq!(login.password, "secret");
/// ```
#[macro_export]
macro_rules! debug_fields {
    ($type:ident $(: $($field:ident),+)?) => {
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $($(.field(stringify!($field), &self.$field))+)?
                    .finish_non_exhaustive()
            }
        }
    };
}
