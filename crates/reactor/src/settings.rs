//! The settings of the pool. Where XRPC has the setting, the name is that of its `polarx_rpc_*` variable without the prefix.

use std::time::Duration;

use stdx::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

#[derive(Clone, Debug)]
pub struct Settings {
    /// 0 means as many groups as it takes to give each base thread a processor.
    pub epoll_groups: usize,
    /// Base threads of a group; 0 means one.
    pub epoll_threads_per_group: usize,
    /// Events that a thread takes at once.
    pub epoll_events_per_thread: usize,
    /// The most threads of a group, including those that wait.
    pub epoll_group_threads_max: usize,
    /// How long a thread beyond the base stays parked before it ends.
    pub epoll_group_dynamic_threads_shrink_time: Duration,
    /// After this time in one piece of work a thread is stuck, and its events go to other threads. The watchdog sleeps while the pool is idle.
    pub epoll_group_thread_deadlock_check_interval: Duration,
    /// Binds base threads to processors, one each.
    pub auto_cpu_affinity: bool,
    /// The most bytes of one receive call.
    pub receive_bytes: usize,
    /// A connection with more unsent bytes than this is not served (RE-10).
    pub output_soft_bytes: usize,
    /// While all connections together have more unsent bytes than this, no connection with more than 4 KiB of them is served (RE-10).
    pub output_total_bytes: usize,
    /// The memory of the empty buffers that a thread with a worker slot keeps (RE-15).
    pub idle_buffer_bytes: usize,
    /// A peer that takes no byte of its output for this time is disconnected.
    pub net_write_timeout: Duration,
    /// Seconds of silence before keep-alive probes are sent; 0 disables them.
    pub tcp_keep_alive: u32,
    /// The sizes of the kernel's buffers of a socket in bytes; 0 leaves them to the kernel.
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
    /// Returns the settings with every 0 that means "automatic" replaced, for a machine with `processors`.
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

/// The settings that may change while the pool runs.
#[derive(Default)]
pub(crate) struct LiveSettings {
    events_per_thread: AtomicUsize,
    shrink_ms: AtomicU64,
    check_ms: AtomicU64,
    receive_bytes: AtomicUsize,
    write_timeout_ms: AtomicU64,
    /// Applies to connections that are accepted from now on.
    pub keep_alive: AtomicU32,
    pub recv_buf: AtomicU32,
    pub send_buf: AtomicU32,
}

impl LiveSettings {
    pub fn of(settings: &Settings) -> LiveSettings {
        let live = LiveSettings::default();
        live.store(settings);
        live
    }

    pub fn store(&self, settings: &Settings) {
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
