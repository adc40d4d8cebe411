//! The function around its body: a request is built, the body runs as a closure under it, and what came of it becomes what
//! the function returns.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{AttrStyle, Error, Ident, ItemFn, Result, ReturnType, Signature, Type, TypeParamBound, parse_quote};

use crate::arguments::Arguments;
use crate::options::{OnBusy, Options};
use crate::{template, values};

pub(crate) fn expand(options: &Options, function: ItemFn) -> Result<TokenStream> {
    let ItemFn { attrs, vis, sig, block, .. } = function;
    let output = output(&sig)?;
    let request = request(options, &sig)?;
    let body = body(options, &sig, &output, &block);
    let finish = finish(options, &sig, &output)?;
    let (inner, outer): (Vec<_>, Vec<_>) =
        attrs.into_iter().partition(|attr| matches!(attr.style, AttrStyle::Inner(_)));
    let wanted = Ident::new("wanted", Span::mixed_site());
    let at = Span::mixed_site().located_at(place(&sig));
    let run = if sig.asyncness.is_some() {
        quote_spanned!(at=> ::bandog::__private::run(#wanted, #body).await)
    } else {
        quote_spanned!(at=> ::bandog::__private::run_blocking(#wanted, #body))
    };
    let default = options.default.as_ref().map(|default| quote!(, || #default));
    let ended = quote_spanned!(at=> ::bandog::__private::#finish(#run #default));
    Ok(quote! {
        #(#outer)* #vis #sig {
            #(#inner)*
            let #wanted = #request;
            #ended
        }
    })
}

/// What the function returns, if that is something a lock can be around.
fn output(signature: &Signature) -> Result<Type> {
    if let Some(word) = &signature.constness {
        return Err(Error::new(word.span(), "a `const fn` cannot have a lock: there is no store at compile time"));
    }
    match &signature.output {
        ReturnType::Default => Ok(parse_quote!(())),
        ReturnType::Type(_, output) if signature.asyncness.is_none() && is_future(output) => {
            let advice = "the lock would be released before it runs; write an `async fn`";
            Err(Error::new(output.span(), format!("this function returns a future, and {advice}")))
        }
        ReturnType::Type(_, output) => Ok((**output).clone()),
    }
}

fn is_future(output: &Type) -> bool {
    struct Futures(bool);
    impl VisitMut for Futures {
        fn visit_type_param_bound_mut(&mut self, bound: &mut TypeParamBound) {
            if let TypeParamBound::Trait(bound) = bound {
                self.0 |= bound.path.segments.last().is_some_and(|last| last.ident == "Future");
            }
        }
    }
    let mut futures = Futures(false);
    futures.visit_type_mut(&mut output.clone());
    futures.0
}

fn request(options: &Options, signature: &Signature) -> Result<TokenStream> {
    let arguments = Arguments::of(signature);
    let name = template::name(&options.name, &arguments)?;
    let locks = locks(options, signature, &arguments)?;
    let kind = Ident::new(if options.shared { "shared" } else { "mutex" }, Span::mixed_site());
    let mut request = quote_spanned!(locks.span()=> ::bandog::__private::#kind(&#locks, #name));
    let mut set = |setter: &str, value: Option<TokenStream>| {
        if let Some(value) = value {
            let setter = Ident::new(setter, Span::mixed_site());
            request.extend(quote!(.#setter(#value)));
        }
    };
    set("wait", options.wait.map(values::quoted));
    set("lease", options.lease.map(values::quoted));
    set("renew_at", options.renew_at.map(|(num, den)| quote!(#num, #den)));
    set("max_renewals", options.max_renewals.map(ToTokens::into_token_stream));
    set("max_hold", options.max_hold.map(values::quoted));
    set("lock_at_least", options.at_least.map(values::quoted));
    set("fair", options.fair.then(TokenStream::new));
    Ok(request)
}

fn locks(options: &Options, signature: &Signature, arguments: &Arguments) -> Result<TokenStream> {
    if let Some(locks) = &options.locks {
        return Ok(quote_spanned!(locks.span()=> (#locks)));
    }
    let named = Ident::new("locks", signature.ident.span());
    if arguments.has(&named) {
        // Where the argument stands, so that a wrong type is shown there.
        let typed = signature.inputs.iter().find(|input| Arguments::binds(input, &named));
        let named =
            Ident::new("locks", Span::call_site().located_at(typed.map_or_else(|| named.span(), Spanned::span)));
        return Ok(quote!(#named));
    }
    let advice = if arguments.has(&Ident::new("self", Span::call_site())) {
        "write `locks = self.locks`, or whatever has it, or take an argument `locks: &Locks`"
    } else {
        "take an argument `locks: &Locks`, or write `locks = …`, an expression that is one"
    };
    Err(Error::new(signature.ident.span(), format!("which `Locks` is the lock of? {advice}")))
}

fn body(options: &Options, signature: &Signature, output: &Type, block: &syn::Block) -> TokenStream {
    let mut output = output.clone();
    Unnamed.visit_type_mut(&mut output);
    let hold = match &options.hold {
        Some(hold) => quote!(#hold: ::bandog::Hold),
        None => quote!(_),
    };
    if signature.asyncness.is_none() {
        return quote!(move |#hold| -> #output #block);
    }
    // Nothing says what a block is to return, other than a return before all others.
    let typed = quote_spanned!(Span::mixed_site()=> if false { return ::bandog::__private::typed::<#output>(); });
    // Not the block itself: the compiler would find braces within braces, and tell the user to remove them.
    let statements = &block.stmts;
    quote!(move |#hold| async move { #typed #(#statements)* })
}

/// A closure cannot name what is only known by its traits; it need not.
struct Unnamed;

impl VisitMut for Unnamed {
    fn visit_type_mut(&mut self, node: &mut Type) {
        if matches!(node, Type::ImplTrait(_)) {
            *node = parse_quote!(_);
        } else {
            visit_mut::visit_type_mut(self, node);
        }
    }
}

/// What makes the function's output of the outcome.
fn finish(options: &Options, signature: &Signature, output: &Type) -> Result<Ident> {
    let wrong = |message: String| Err(Error::new(place(signature), message));
    let name = last_segment(output);
    let finish = match (options.on_busy, &options.default) {
        (OnBusy::Fail, _) if matches!(signature.output, ReturnType::Default) => {
            let advice =
                "write `-> Result<(), E>` with `E: From<bandog::RunError>`, or `on_busy = \"skip\", default = ()`";
            return wrong(format!("this function returns no `Result`, but its lock may be busy or lost: {advice}"));
        }
        (OnBusy::Skip, None) if !matches!(name.as_deref(), Some("Option" | "Result")) => {
            let advice = "write `Option<T>` or `Result<Option<T>, E>`, or say what to return: `default = …`";
            return wrong(format!("with `on_busy = \"skip\"` there must be something to return: {advice}"));
        }
        (OnBusy::Fail, _) => "or_fail",
        (OnBusy::Skip, None) => "or_none",
        (OnBusy::Skip, Some(_)) if name.as_deref() == Some("Result") => "or_ok",
        (OnBusy::Skip, Some(_)) => "or_default",
    };
    Ok(Ident::new(finish, Span::mixed_site()))
}

/// Where the return type stands: it decides what an outcome can become.
fn place(signature: &Signature) -> Span {
    match &signature.output {
        ReturnType::Default => signature.ident.span(),
        ReturnType::Type(_, output) => output.span(),
    }
}

fn last_segment(output: &Type) -> Option<String> {
    match output {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        Type::Paren(inner) => last_segment(&inner.elem),
        Type::Group(inner) => last_segment(&inner.elem),
        _ => None,
    }
}
