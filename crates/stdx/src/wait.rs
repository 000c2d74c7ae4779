use std::cell::Cell;
pub struct Reason {
    pub name: &'static str,
}
#[derive(Clone, Copy)]
pub enum Edge {
    Begin,
    End,
}
pub type Hook = fn(&'static Reason, Edge);
thread_local! { static HOOK: Cell<Option<Hook>> = const { Cell::new(None) }; }
pub fn install(hook: Option<Hook>) {
    HOOK.set(hook)
}
pub struct Waiting(&'static Reason, Option<Hook>);
pub fn announce(reason: &'static Reason) -> Waiting {
    let h = HOOK.get();
    if let Some(h) = h {
        h(reason, Edge::Begin)
    }
    Waiting(reason, h)
}
impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(h) = self.1 {
            h(self.0, Edge::End)
        }
    }
}
