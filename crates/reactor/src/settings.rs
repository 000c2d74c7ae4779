//! Sizes of the pool. The names are those of XRPC's `polarx_rpc_*` variables without the prefix, where XRPC has the thing.

use std::time::Duration;

use stdx::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

#[derive(Clone, Debug)]
pub struct Settings {
    /// 0: as many as it takes to give each of `epoll_threads_per_group` threads a processor.
    pub epoll_groups: usize,
    /// Base threads of a group; 0: one.
    pub epoll_threads_per_group: usize,
    /// Readiness reports that a thread takes at once.
    pub epoll_events_per_thread: usize,
    /// A group never has more threads than this, however many wait.
    pub epoll_group_threads_max: usize,
    /// How long a thread beyond the base stays without work.
    pub epoll_group_dynamic_threads_shrink_time: Duration,
    /// How often the watchdog looks for a thread that is still in the same piece of work; its events go to others then. It sleeps while the pool is idle.
    pub epoll_group_thread_deadlock_check_interval: Duration,
    /// Bind base threads to processors, one each.
    pub auto_cpu_affinity: bool,
    /// Received bytes are taken in pieces of at most this size.
    pub receive_bytes: usize,
    /// A connection with more unsent bytes than this is not served.
    pub output_soft_bytes: usize,
    /// With more unsent bytes than this in all connections together, none that has more than a few kilobytes of them is served.
    pub output_total_bytes: usize,
    /// A thread keeps empty buffers for the next rounds up to so many bytes.
    pub idle_buffer_bytes: usize,
    /// A peer that takes no byte of waiting output for so long is disconnected.
    pub net_write_timeout: Duration,
    /// Seconds of silence before keep-alive probes; 0 sends none.
    pub tcp_keep_alive: u32,
    /// Bytes that the system keeps for a socket, received and to be sent; 0: as many as it likes.
    pub tcp_recv_buf: u32,
    pub tcp_send_buf: u32,
    pub tcp_listen_queue: i32,
    pub max_connections: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            epoll_groups: 0,
            epoll_threads_per_group: 0,
            epoll_events_per_thread: 64,
            epoll_group_threads_max: 256,
            epoll_group_dynamic_threads_shrink_time: Duration::from_secs(10),
            epoll_group_thread_deadlock_check_interval: Duration::from_millis(100),
            auto_cpu_affinity: false,
            receive_bytes: 64 << 10,
            output_soft_bytes: 1 << 20,
            output_total_bytes: 256 << 20,
            idle_buffer_bytes: 5 << 20,
            net_write_timeout: Duration::from_secs(60),
            tcp_keep_alive: 300,
            tcp_recv_buf: 0,
            tcp_send_buf: 0,
            tcp_listen_queue: 511,
            max_connections: 10_000,
        }
    }
}

impl Settings {
    /// The same with every 0 that means "automatic" replaced.
    pub fn resolve(&self, processors: usize) -> Settings {
        let mut settings = self.clone();
        let processors = processors.max(1);
        if settings.epoll_threads_per_group == 0 {
            settings.epoll_threads_per_group = 1;
        }
        if settings.epoll_groups == 0 {
            settings.epoll_groups = processors.div_ceil(settings.epoll_threads_per_group);
        }
        settings.epoll_group_threads_max = settings.epoll_group_threads_max.max(settings.epoll_threads_per_group);
        settings
    }
}

/// Those that may change while the pool runs.
#[derive(Default)]
pub(crate) struct Live {
    events_per_thread: AtomicUsize,
    shrink_ms: AtomicU64,
    check_ms: AtomicU64,
    receive_bytes: AtomicUsize,
    write_timeout_ms: AtomicU64,
    /// Of connections that come from now on.
    pub keep_alive: AtomicU32,
    pub recv_buf: AtomicU32,
    pub send_buf: AtomicU32,
}

impl Live {
    pub fn of(settings: &Settings) -> Live {
        let live = Live::default();
        live.take(settings);
        live
    }

    pub fn take(&self, settings: &Settings) {
        let ms = |time: Duration| time.as_millis() as u64;
        self.events_per_thread.store(settings.epoll_events_per_thread, Ordering::Relaxed);
        self.shrink_ms.store(ms(settings.epoll_group_dynamic_threads_shrink_time), Ordering::Relaxed);
        self.check_ms.store(ms(settings.epoll_group_thread_deadlock_check_interval), Ordering::Relaxed);
        self.receive_bytes.store(settings.receive_bytes, Ordering::Relaxed);
        self.write_timeout_ms.store(ms(settings.net_write_timeout), Ordering::Relaxed);
        self.keep_alive.store(settings.tcp_keep_alive, Ordering::Relaxed);
        self.recv_buf.store(settings.tcp_recv_buf, Ordering::Relaxed);
        self.send_buf.store(settings.tcp_send_buf, Ordering::Relaxed);
    }

    pub fn events_per_thread(&self) -> usize {
        self.events_per_thread.load(Ordering::Relaxed)
    }

    pub fn shrink_time(&self) -> Duration {
        Duration::from_millis(self.shrink_ms.load(Ordering::Relaxed))
    }

    pub fn check_interval(&self) -> Duration {
        Duration::from_millis(self.check_ms.load(Ordering::Relaxed))
    }

    pub fn receive_bytes(&self) -> usize {
        self.receive_bytes.load(Ordering::Relaxed)
    }

    pub fn write_timeout(&self) -> Duration {
        Duration::from_millis(self.write_timeout_ms.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::Settings;

    #[test]
    fn every_processor_gets_a_base_thread() {
        for processors in [1, 2, 3, 4, 5, 16, 120] {
            let settings = Settings::default().resolve(processors);
            let threads = settings.epoll_groups * settings.epoll_threads_per_group;
            assert_eq!(threads, processors, "{settings:?}");
        }
    }
}
