//! The attribute `#[bandog::locked(…)]`. People use it through `bandog`, whose documentation describes it.
//!
//! [`options`] reads the attribute, [`template`] its lock name, [`arguments`] the names that it may use; [`expand`] puts them
//! around the function. The expansion builds a request and hands it, with the body as a closure, to `bandog::__private`: whatever can be
//! a function there is none here.

mod arguments;
mod expand;
mod options;
mod template;
mod values;

use proc_macro::TokenStream;
use quote::quote;

/// A lock around a function: acquired before its body, released after it.
#[proc_macro_attribute]
pub fn locked(attribute: TokenStream, function: TokenStream) -> TokenStream {
    let as_written = proc_macro2::TokenStream::from(function.clone());
    let expanded = syn::parse::<options::Options>(attribute)
        .and_then(|options| expand::expand(&options, read(function)?))
        .unwrap_or_else(|error| {
            // The function stays: that it is missing would be said at each of its callers.
            let error = error.into_compile_error();
            quote!(#error #[allow(unused)] #as_written)
        });
    expanded.into()
}

fn read(function: TokenStream) -> syn::Result<syn::ItemFn> {
    let wrong =
        |error: syn::Error| syn::Error::new(error.span(), format!("`#[locked]` is for functions with a body: {error}"));
    syn::parse(function).map_err(wrong)
}
