//! How many may wait.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::channels::Channels;

/// A number of places to wait in.
#[derive(Debug)]
pub(super) struct Room(Arc<Semaphore>);

/// A place in a room, free again when dropped.
pub(super) type Place = OwnedSemaphorePermit;

impl Room {
    pub(super) fn new(places: usize) -> Self {
        Self(Arc::new(Semaphore::new(places)))
    }

    /// Takes a place if one is free now.
    pub(super) fn try_enter(&self) -> Option<Place> {
        self.0.clone().try_acquire_owned().ok()
    }

    /// Takes a place; none when all are taken and no gateway is there that could make one free.
    ///
    /// With a gateway that is only slow this waits, and whoever accepts connections does not accept more meanwhile.
    pub(super) async fn enter(&self, channels: &Channels) -> Option<Place> {
        if let Some(place) = self.try_enter() {
            return Some(place);
        }
        tokio::select! {
            place = self.0.clone().acquire_owned() => place.ok(),
            () = channels.until_none() => None,
        }
    }
}
