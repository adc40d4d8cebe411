//! The names that a function's arguments bind: what a lock name may be made of.

use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{FnArg, Ident, Pat, PatIdent, Signature};

/// The names, in their order.
pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    pub(crate) fn of(signature: &Signature) -> Self {
        Self(signature.inputs.iter().flat_map(names).collect())
    }

    /// Whether this argument binds the name.
    pub(crate) fn binds(argument: &FnArg, name: &Ident) -> bool {
        names(argument).iter().any(|bound| name == bound)
    }

    pub(crate) fn has(&self, name: &Ident) -> bool {
        self.0.iter().any(|known| name == known)
    }

    /// The names as people read them.
    pub(crate) fn listed(&self) -> String {
        match &self.0[..] {
            [] => "this function has no arguments".to_owned(),
            [one] => format!("the only argument is `{one}`"),
            many => format!(
                "the arguments are {}",
                many.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            ),
        }
    }
}

fn names(argument: &FnArg) -> Vec<String> {
    let mut bound = Bound(Vec::new());
    match argument {
        FnArg::Receiver(_) => bound.0.push("self".to_owned()),
        FnArg::Typed(typed) => bound.visit_pat_mut(&mut Pat::clone(&typed.pat)),
    }
    bound.0
}

/// Collects the names that patterns bind.
struct Bound(Vec<String>);

impl VisitMut for Bound {
    fn visit_pat_ident_mut(&mut self, pattern: &mut PatIdent) {
        self.0.push(pattern.ident.to_token_stream().to_string());
        visit_mut::visit_pat_ident_mut(self, pattern);
    }
}
