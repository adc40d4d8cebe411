//! The values of options: durations, fractions and numbers, checked where they are written.

use std::time::Duration;

use bandog_core::lease::Lease;
use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Lit, Result};

/// A duration, as it is written in URLs and the environment too.
pub(crate) fn duration(option: &str, value: &Expr) -> Result<Duration> {
    let wrong = || {
        Error::new(value.span(), format!("`{option}` is a duration in quotes, such as \"5s\", \"1h30m\" or \"500ms\""))
    };
    let Some(Lit::Str(text)) = literal(value) else { return Err(wrong()) };
    let text = text.value();
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => humantime::parse_duration(&text).ok(),
    }
    .ok_or_else(wrong)
}

/// A duration that is a lease.
pub(crate) fn lease(value: &Expr) -> Result<Duration> {
    let length = duration("lease", value)?;
    Lease::new(length).map_err(|error| Error::new(value.span(), error))?;
    Ok(length)
}

/// A duration that is not nothing.
pub(crate) fn some_time(option: &str, value: &Expr) -> Result<Duration> {
    let length = duration(option, value)?;
    if length.is_zero() {
        return Err(Error::new(value.span(), format!("`{option}` must be more than zero")));
    }
    Ok(length)
}

/// A share of the lease, as a fraction.
pub(crate) fn share(option: &str, value: &Expr) -> Result<(u32, u32)> {
    let wrong = || Error::new(value.span(), format!("`{option}` is a share of the lease between 0 and 1, such as 0.9"));
    let Some(Lit::Float(share)) = literal(value) else { return Err(wrong()) };
    let digits = share.base10_digits().strip_prefix("0.").ok_or_else(wrong)?.trim_end_matches('0');
    let (num, places) = (digits.parse().map_err(|_| wrong())?, u32::try_from(digits.len()).map_err(|_| wrong())?);
    Ok((num, 10_u32.checked_pow(places).ok_or_else(wrong)?))
}

pub(crate) fn number(option: &str, value: &Expr) -> Result<u32> {
    let wrong = || Error::new(value.span(), format!("`{option}` is a whole number, such as 3"));
    match literal(value) {
        Some(Lit::Int(number)) => number.base10_parse().map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

pub(crate) fn yes_no(option: &str, value: &Expr) -> Result<bool> {
    match literal(value) {
        Some(Lit::Bool(yes)) => Ok(yes.value),
        _ => Err(Error::new(value.span(), format!("write `{option}`, `{option} = true` or `{option} = false`"))),
    }
}

/// A duration in the expansion.
pub(crate) fn quoted(length: Duration) -> TokenStream {
    let (seconds, nanos) = (length.as_secs(), length.subsec_nanos());
    quote!(::bandog::__private::Duration::new(#seconds, #nanos))
}

pub(crate) fn literal(value: &Expr) -> Option<&Lit> {
    match value {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        _ => None,
    }
}
