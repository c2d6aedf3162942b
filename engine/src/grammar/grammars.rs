//! Forms over one vocabulary.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory, panic_utils};

use super::calls::Calls;
use super::constraint::Constraint;
use super::error::{GrammarError, one_line};
use super::form::Form;
use crate::text::{ControlToken, Tokenizer};

/// Compiles forms to grammars over the tokens of one model.
pub struct Grammars {
    factory: ParserFactory,
    reasoning: Arc<Reasoning>,
    /// Begins the markup of tool calls.
    calls: u32,
    words: usize,
}

/// What a reply is held to, at least one of the two.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplyForm<'a> {
    /// Of the answer.
    pub answer: Option<&'a Form>,
    /// Calls that may come instead or, where the answer has no form, after any text.
    pub calls: Option<&'a Calls>,
    /// Reasoning comes first.
    pub reasons: bool,
}

/// What may come while the model reasons and a form waits for its answer.
#[derive(Debug)]
pub(super) struct Reasoning {
    /// Ends it.
    pub(super) close: u32,
    /// Every token of text, and that one. So an answer that is to have a form is begun.
    pub(super) allowed: Vec<u32>,
}

/// A form, compiled. Cloning shares it.
#[derive(Clone)]
pub struct Grammar(Arc<Compiled>);

struct Compiled {
    /// At the start of an answer.
    matcher: Mutex<Matcher>,
    /// Of an answer that comes behind reasoning.
    reasoning: Option<Arc<Reasoning>>,
    words: usize,
}

impl Grammars {
    /// Over the tokens of `tokenizer`, for a model with logits of `vocabulary` ids.
    ///
    /// # Errors
    /// [`GrammarError::Tokenizer`] when a control token that forms need is missing.
    pub fn new(tokenizer: &Tokenizer, vocabulary: u32) -> Result<Self, GrammarError> {
        let control = |token, missing| {
            tokenizer.control_token(token).map_err(|_| GrammarError::Tokenizer { missing })
        };
        let end = control(ControlToken::Eos, "end token")?;
        let close = control(ControlToken::ThinkClose, "closing tag of reasoning")?;
        let calls = control(ControlToken::Dsml, "marker of tool calls")?;
        let words = vocabulary.div_ceil(32) as usize;
        let mut allowed = vec![0; words];
        let mut bytes = Vec::new();
        for id in 0..vocabulary {
            let text = tokenizer.token_bytes(id).ok().filter(|_| !tokenizer.is_added(id));
            if text.is_some() || id == close {
                allowed[(id / 32) as usize] |= 1 << (id % 32);
            }
            // Without text there is a marker instead: a grammar names such an id or never meets it.
            let marker =
                || [&[TokTrie::SPECIAL_TOKEN_MARKER], &*format!("[{id}]").into_bytes()].concat();
            bytes.push(text.map_or_else(marker, <[u8]>::to_vec));
        }
        let trie = TokTrie::from(&TokRxInfo::new(vocabulary, end), &bytes);
        let tokens: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let slices = SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(&tokens, InferenceCapabilities::default(), &slices)
            .map_err(|error| GrammarError::Form { problem: one_line(&error) })?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Self { factory, reasoning: Arc::new(Reasoning { close, allowed }), calls, words })
    }

    /// The grammar of a form. Takes up to some seconds for the largest forms.
    ///
    /// # Errors
    /// [`GrammarError::Form`] naming what of it is wrong or not supported, or that no answer can begin
    /// by it.
    pub fn compile(&self, form: ReplyForm<'_>) -> Result<Grammar, GrammarError> {
        let grammar = self.grammar(form)?;
        // The library is careful, and is given what strangers wrote.
        let made =
            panic_utils::catch_unwind(AssertUnwindSafe(|| self.factory.create_parser(grammar)));
        let mut matcher = Matcher::new(made);
        if let Some(problem) = matcher.get_error() {
            return Err(GrammarError::Form { problem: one_line(&problem) });
        }
        if !matcher.compute_mask_or_eos().is_ok_and(|first| !first.is_zero()) {
            let problem = "no answer can meet it; allow at least one".to_owned();
            return Err(GrammarError::Form { problem });
        }
        Ok(Grammar(Arc::new(Compiled {
            matcher: Mutex::new(matcher),
            reasoning: form.reasons.then(|| Arc::clone(&self.reasoning)),
            words: self.words,
        })))
    }
}

impl Grammars {
    fn grammar(&self, form: ReplyForm<'_>) -> Result<TopLevelGrammar, GrammarError> {
        let answer = form.answer.map(Form::answer);
        let Some(calls) = form.calls else {
            let nothing = || GrammarError::Form { problem: "nothing is asked for".to_owned() };
            return answer.map(TopLevelGrammar::from_grammar).ok_or_else(nothing);
        };
        let name = |answer| GrammarWithLexer { name: Some("answer".to_owned()), ..answer };
        let answer = answer.map(name);
        let lark = calls.lark(self.calls, answer.as_ref().map(|_| "@answer"))?;
        let grammars = [Some(GrammarWithLexer::from_lark(lark)), answer];
        Ok(TopLevelGrammar { grammars: grammars.into_iter().flatten().collect(), max_tokens: None })
    }
}

impl fmt::Debug for Grammars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grammars").field("words", &self.words).finish_non_exhaustive()
    }
}

impl Grammar {
    /// Words of a mask.
    pub fn words(&self) -> usize {
        self.0.words
    }

    /// At the start of a reply.
    pub fn start(&self) -> Constraint {
        let compiled = &self.0;
        // A clone is whole or not made.
        let matcher = compiled.matcher.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Constraint::new(matcher, compiled.reasoning.clone(), compiled.words)
    }
}

impl fmt::Debug for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Grammar").finish_non_exhaustive()
    }
}

/// Equal are those that were compiled once.
impl PartialEq for Grammar {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
