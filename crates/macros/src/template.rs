//! The lock name of the attribute: text with arguments in braces, `order:{id}`, `cart:{self.user.id()}`, `shard:{n:04}`.
//!
//! Invariant: whatever stands in braces begins with an argument of the function and does nothing but look at it.

use bandog_core::name::LockName;
use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::parse::{Parse, Parser};
use syn::visit_mut::{self, VisitMut};
use syn::{Error, Expr, Ident, LitStr, Result};

use crate::arguments::Arguments;

/// The name as `format_args!` builds it.
pub(crate) fn name(literal: &LitStr, arguments: &Arguments) -> Result<TokenStream> {
    let text = literal.value();
    let mut template = Template { span: literal.span(), arguments, format: String::new(), values: Vec::new() };
    template.read(&text)?;
    let Template { span, format, values, .. } = template;
    if values.is_empty() {
        let plain = format.replace("{{", "{").replace("}}", "}");
        LockName::new(&plain).map_err(|error| Error::new(span, error))?;
    }
    let format = LitStr::new(&format, Span::mixed_site());
    Ok(quote_spanned!(Span::mixed_site()=> ::core::format_args!(#format, #(#values),*)))
}

struct Template<'a> {
    span: Span,
    arguments: &'a Arguments,
    /// What has been read, for `format_args!`.
    format: String,
    values: Vec<Expr>,
}

impl Template<'_> {
    fn read(&mut self, text: &str) -> Result<()> {
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            self.format.push_str(&rest[..at]);
            let brace = &rest[at..];
            if let Some(after) = brace.strip_prefix("{{").or_else(|| brace.strip_prefix("}}")) {
                self.format.push_str(&brace[..2]);
                rest = after;
            } else if let Some(slot) = brace.strip_prefix('{') {
                let end =
                    slot.find('}').ok_or_else(|| self.error("a `{` is not closed; write `{{` for the character"))?;
                self.slot(&slot[..end])?;
                rest = &slot[end + 1..];
            } else {
                return Err(self.error("a `}` is not opened; write `}}` for the character"));
            }
        }
        self.format.push_str(rest);
        Ok(())
    }

    /// One pair of braces and what stands in it.
    fn slot(&mut self, slot: &str) -> Result<()> {
        let (source, spec) = split(slot);
        if source.trim().is_empty() {
            return Err(self.error(format!("`{{{slot}}}` names no argument; {}", self.arguments.listed())));
        }
        if !is_plain(spec) {
            let advice = "a width, a precision or a number's base: names are made by `Display`";
            return Err(self.error(format!("`:{spec}` cannot be the form of a lock name's part; it can be {advice}")));
        }
        let unclear = || self.error(format!("`{{{slot}}}` is not an argument, a field of one or a method of one"));
        let mut value = Expr::parse.parse_str(source).map_err(|_| unclear())?;
        let root = root(&value).ok_or_else(unclear)?;
        if !self.arguments.has(&root) {
            return Err(
                self.error(format!("there is no argument `{root}` for the lock name; {}", self.arguments.listed()))
            );
        }
        Placed(self.span).visit_expr_mut(&mut value);
        self.values.push(value);
        self.format.push_str(&if spec.is_empty() { "{}".to_owned() } else { format!("{{:{spec}}}") });
        Ok(())
    }

    fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::new(self.span, message)
    }
}

/// What is shown, and in which form: at the first colon that is not inside a call's parentheses.
fn split(slot: &str) -> (&str, &str) {
    let mut depth = 0_usize;
    for (at, character) in slot.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => return (&slot[..at], &slot[at + 1..]),
            _ => {}
        }
    }
    (slot, "")
}

fn is_plain(spec: &str) -> bool {
    let spec = spec.strip_prefix(['<', '^', '>']).unwrap_or(spec);
    let spec = spec.strip_suffix(['x', 'X', 'o', 'b']).unwrap_or(spec);
    let (width, precision) = spec.split_once('.').map_or((spec, "0"), |(width, precision)| (width, precision));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    digits(width) && digits(precision) && !precision.is_empty()
}

/// The argument that an expression looks at.
fn root(value: &Expr) -> Option<Ident> {
    match value {
        Expr::Path(path) => path.path.get_ident().cloned(),
        Expr::Field(field) => root(&field.base),
        Expr::MethodCall(call) if call.args.iter().all(|argument| matches!(argument, Expr::Lit(_))) => {
            root(&call.receiver)
        }
        _ => None,
    }
}

/// Gives every name the place of the template: the compiler's words about it point there.
struct Placed(Span);

impl VisitMut for Placed {
    fn visit_ident_mut(&mut self, ident: &mut Ident) {
        ident.set_span(self.0);
    }

    fn visit_expr_mut(&mut self, value: &mut Expr) {
        visit_mut::visit_expr_mut(self, value);
    }
}
