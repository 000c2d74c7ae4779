//! The end of a server's life is asked for by a signal, or by SHUTDOWN at the Redis door. A thread takes the signals, and a second one ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use door_redis::RedisDoor;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::log;

/// The cause of a stop.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    Signal(i32),
    /// SHUTDOWN.
    Command,
}

impl Stop {
    /// Returns the name of the signal as in `shutdown-on-NAME`.
    fn signal_name(self) -> Option<&'static str> {
        match self {
            Stop::Signal(SIGTERM) => Some("sigterm"),
            Stop::Signal(SIGINT) => Some("sigint"),
            _ => None,
        }
    }
}

/// Asks the server to stop, from any thread.
#[derive(Clone)]
pub struct StopSender(Sender<Stop>);

impl StopSender {
    /// Returns one for a door without clients, which nobody hears.
    pub fn unheard() -> StopSender {
        StopSender(channel().0)
    }

    pub fn send(&self, stop: Stop) {
        // Nobody listens once the server has stopped.
        let _ = self.0.send(stop);
    }
}

/// The causes of stops, in order.
pub struct Stops {
    asked: Receiver<Stop>,
    sender: StopSender,
    is_stopping: Arc<AtomicBool>,
}

impl Stops {
    /// Takes signals from now on.
    pub fn listen(mut signals: Signals) -> std::io::Result<Stops> {
        let (sender, asked) = channel();
        let (sender, is_stopping) = (StopSender(sender), Arc::new(AtomicBool::new(false)));
        let (of_thread, is_second) = (sender.clone(), is_stopping.clone());
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            for signal in signals.forever() {
                if is_second.swap(true, Ordering::AcqRel) {
                    // Acknowledged changes are in the WAL.
                    log::warn("stopped by a second signal", &[]);
                    os::process::end_now(128 + signal);
                }
                of_thread.send(Stop::Signal(signal));
            }
        })?;
        Ok(Stops { asked, sender, is_stopping })
    }

    pub fn sender(&self) -> StopSender {
        self.sender.clone()
    }

    /// Returns when the server is to stop now: it was asked to, and the Redis door has prepared it.
    pub fn wait(&self, door: &RedisDoor) {
        while let Ok(stop) = self.asked.recv() {
            self.is_stopping.store(true, Ordering::Release);
            match stop {
                Stop::Signal(signal) => log::info("stopping", &[("signal", &signal)]),
                Stop::Command => log::info("stopping", &[("command", &"SHUTDOWN")]),
            }
            if door.prepare_stop(stop.signal_name()) {
                return;
            }
            self.is_stopping.store(false, Ordering::Release);
        }
    }
}
