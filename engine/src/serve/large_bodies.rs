//! Large bodies are prepared one at a time.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::api::error::ApiError;
use super::caller::{Caller, Line};
use super::job::Failure;

/// Whose turn it is.
pub(super) struct LargeBodies {
    /// Bodies of more bytes are large.
    most_bytes: usize,
    turn: Arc<Semaphore>,
}

impl LargeBodies {
    /// Bodies of more than `most_bytes` are large.
    pub(super) fn new(most_bytes: usize) -> Self {
        Self { most_bytes, turn: Arc::new(Semaphore::new(1)) }
    }

    /// Runs what makes a prompt of a body of `bytes` on a thread for what takes long. Other large
    /// bodies wait until it is over, even when its caller hung up: the memory that it takes is
    /// only then free.
    ///
    /// # Errors
    /// Those of `work`; 500 when it panicked.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&Caller) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let turn = if bytes > self.most_bytes {
            let turn = Arc::clone(&self.turn).acquire_owned().await;
            Some(turn.expect("nobody closes the semaphore"))
        } else {
            None
        };
        let line = Line::default();
        let caller = line.caller();
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            caller.check_waiting()?;
            work(&caller)
        })
        .await;
        drop(line);
        done.unwrap_or_else(|error| {
            Err(Failure::Faulted(format!("preparing the request failed: {error}")).into())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    type Task = tokio::task::JoinHandle<Result<(), ApiError>>;

    /// A body whose work says that it began and ends when it is told to.
    fn scene(
        bodies: &Arc<LargeBodies>,
        bytes: usize,
    ) -> (Task, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let ((tell_begun, begun), (end, told_to_end)) = (mpsc::channel(), mpsc::channel());
        let bodies = Arc::clone(bodies);
        let task = tokio::spawn(async move {
            let work = move |_: &Caller| {
                tell_begun.send(()).unwrap();
                told_to_end.recv().unwrap();
                Ok(())
            };
            bodies.run(bytes, work).await
        });
        (task, begun, end)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_large_body_waits_for_the_one_before_even_when_its_client_hung_up() {
        let patience = Duration::from_secs(60);
        let bodies = Arc::new(LargeBodies::new(10));
        let (first, first_begun, end_first) = scene(&bodies, 11);
        first_begun.recv_timeout(patience).unwrap();
        let (second, second_begun, end_second) = scene(&bodies, 11);
        let (small, small_begun, end_small) = scene(&bodies, 10);
        small_begun.recv_timeout(patience).unwrap();
        end_small.send(()).unwrap();
        small.await.unwrap().unwrap();
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        let waits = second_begun.recv_timeout(Duration::from_millis(100));
        assert_eq!(waits, Err(mpsc::RecvTimeoutError::Timeout));
        end_first.send(()).unwrap();
        second_begun.recv_timeout(patience).unwrap();
        end_second.send(()).unwrap();
        second.await.unwrap().unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn work_hears_that_its_caller_hung_up() {
        let patience = Duration::from_secs(60);
        let (tell, told) = mpsc::channel();
        let task = tokio::spawn(async move {
            let work = move |caller: &Caller| -> Result<(), ApiError> {
                caller.check_waiting()?;
                tell.send("waiting").unwrap();
                while caller.check_waiting().is_ok() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                tell.send("hung up").unwrap();
                Ok(())
            };
            LargeBodies::new(10).run(11, work).await
        });
        assert_eq!(told.recv_timeout(patience), Ok("waiting"));
        let more = told.recv_timeout(Duration::from_millis(50));
        assert_eq!(more, Err(mpsc::RecvTimeoutError::Timeout));
        task.abort();
        assert_eq!(told.recv_timeout(patience), Ok("hung up"));
    }
}
