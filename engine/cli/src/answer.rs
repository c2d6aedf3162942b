//! One answer, token by token.

use std::ops::ControlFlow;

use tandem_engine::exec::{FinishReason, Request, What};
use tandem_engine::text::Tokenizer;
use tandem_engine::{Error, Result};

use crate::ready::Ready;

impl Ready {
    /// Runs one request to its end and answers why it ended. `stop` is asked before each step
    /// whether to end it; `each` is given the tokens as they come and may end it too.
    ///
    /// # Errors
    /// When the request cannot be run, a device fails, or `each` does.
    pub(crate) fn answer(
        &mut self,
        request: Request,
        stop: impl Fn() -> bool,
        mut each: impl FnMut(&Tokenizer, u32) -> Result<ControlFlow<()>>,
    ) -> Result<FinishReason> {
        let request = self.engine.add(request)?;
        let mut wanted = true;
        loop {
            if !wanted || stop() {
                self.engine.cancel(request);
            }
            for event in self.engine.step()? {
                match event.what {
                    What::Token { id, .. } if wanted => {
                        wanted = each(&self.tokenizer, id)?.is_continue();
                    }
                    What::Token { .. } | What::Started { .. } => {}
                    What::Finished { reason: FinishReason::NotANumber, .. } => {
                        let problem = "its logits are no numbers; run 'tandem verify' on it";
                        return Err(Error::Checkpoint { problem: problem.into() });
                    }
                    What::Finished { reason, .. } => return Ok(reason),
                }
            }
        }
    }
}
