//! Keyspace notifications: events of keys as messages on the channels `__keyspace@0__:key` and `__keyevent@0__:event`.
//!
//! The engine announces events while a transaction holds its stripes, with their durability LSN. Here they only reach mailboxes.

use std::sync::{Arc, Weak};

use engine::{KeyEvent, Lsn, event_class};
use stdx::sync::atomic::Ordering;

use crate::clients::Client;
use crate::messages::delivery::Delivery;
use crate::messages::subscriptions::Topic;
use crate::messages::tracking_state::TrackingState;
use crate::parameters::event_flags::{KEYEVENT, KEYSPACE};
use crate::shared::Shared;

impl Shared {
    /// Listens to events of keys from now on.
    pub fn listen_to_keys(self: &Arc<Shared>) {
        // The keyspace belongs to the shared state, so a strong reference would be a circle.
        let shared: Weak<Shared> = Arc::downgrade(self);
        self.keyspace.events().listen(Box::new(move |events, lsn| {
            if let Some(shared) = shared.upgrade() {
                shared.announce(events, lsn);
            }
        }));
    }

    /// Takes over a change of `notify-keyspace-events`.
    pub fn set_event_flags(&self, text: &str) {
        self.event_flags.set(text);
        self.want_events();
    }

    /// Asks the keyspace for the events that somebody may hear of.
    pub fn want_events(&self) {
        self.tracking.while_counted(|any_tracks| {
            let changes = if any_tracks { event_class::CHANGED | event_class::CONTENTS } else { 0 };
            self.keyspace.events().want(self.event_flags.classes() | changes);
        });
    }

    /// Begins to tell a client of changes, or changes what it is told.
    pub fn start_tracking(&self, client: &Arc<Client>, state: TrackingState, prefixes: &[Box<[u8]>]) {
        if let Some(target) = self.clients.find(state.redirect) {
            target.is_redirected_to.store(true, Ordering::Relaxed);
        }
        *client.tracking.lock() = state;
        client.tracks.store(true, Ordering::Relaxed);
        self.tracking.join(client, prefixes);
        self.want_events();
    }

    pub fn stop_tracking(&self, client: &Client) {
        if client.tracks.swap(false, Ordering::Relaxed) {
            self.tracking.leave(client);
            self.want_events();
        }
    }

    fn announce(self: &Arc<Shared>, events: &[KeyEvent], lsn: Lsn) {
        let lsn = if self.strict.load(Ordering::Relaxed) { lsn } else { 0 };
        let mut delivery = self.delivery(lsn);
        let classes = self.event_flags.classes();
        events
            .iter()
            .filter(|event| event.class & classes != 0)
            .for_each(|event| self.send_event(event, &mut delivery));
        if self.tracking.client_count() > 0 {
            self.tracking.announce(events, &self.clients, &mut delivery);
        }
        self.finish(delivery);
    }

    fn send_event(&self, event: &KeyEvent, delivery: &mut Delivery<'_>) {
        let flags = self.event_flags.get();
        let channel = |kind: &str, name: &[u8]| [format!("__{kind}@{}__:", event.db).as_bytes(), name].concat();
        if flags & KEYSPACE != 0 {
            self.hub.publish(Topic::Channel, &channel("keyspace", &event.key), event.name.as_bytes(), delivery);
        }
        if flags & KEYEVENT != 0 {
            self.hub.publish(Topic::Channel, &channel("keyevent", event.name.as_bytes()), &event.key, delivery);
        }
    }
}
