//! Long texts are tokenised one at a time.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::api::error::ApiError;
use super::blocking::blocking;

/// Whose turn it is.
pub(super) struct LongTexts {
    /// Texts of more bytes are long.
    most_bytes: usize,
    turn: Arc<Semaphore>,
}

impl LongTexts {
    /// Texts of more than `most_bytes` are long.
    pub(super) fn new(most_bytes: usize) -> Self {
        Self { most_bytes, turn: Arc::new(Semaphore::new(1)) }
    }

    /// Runs what tokenises `bytes` of text on a thread for what takes long; other long texts wait
    /// until it is over, even when nobody waits for this one any longer.
    ///
    /// # Errors
    /// Those of `work`; 500 when it panicked.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let turn = if bytes > self.most_bytes {
            let turn = Arc::clone(&self.turn).acquire_owned().await;
            Some(turn.expect("nobody closes the semaphore"))
        } else {
            None
        };
        blocking(move || {
            let _turn = turn;
            work()
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// A text whose tokenising says that it began and ends when it is told to.
    fn scene(
        texts: &Arc<LongTexts>,
        bytes: usize,
    ) -> (tokio::task::JoinHandle<()>, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let ((tell_begun, begun), (end, told_to_end)) = (mpsc::channel(), mpsc::channel());
        let texts = Arc::clone(texts);
        let task = tokio::spawn(async move {
            let work = move || {
                tell_begun.send(()).unwrap();
                told_to_end.recv().unwrap();
                Ok(())
            };
            texts.run(bytes, work).await.unwrap();
        });
        (task, begun, end)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_text_waits_for_the_one_before_even_when_its_client_hung_up() {
        let patience = Duration::from_secs(60);
        let texts = Arc::new(LongTexts::new(10));
        let (first, first_begun, end_first) = scene(&texts, 11);
        first_begun.recv_timeout(patience).unwrap();
        let (second, second_begun, end_second) = scene(&texts, 11);
        let (short, short_begun, end_short) = scene(&texts, 10);
        short_begun.recv_timeout(patience).unwrap();
        end_short.send(()).unwrap();
        short.await.unwrap();
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        let waits = second_begun.recv_timeout(Duration::from_millis(100));
        assert_eq!(waits, Err(mpsc::RecvTimeoutError::Timeout));
        end_first.send(()).unwrap();
        second_begun.recv_timeout(patience).unwrap();
        end_second.send(()).unwrap();
        second.await.unwrap();
    }
}
