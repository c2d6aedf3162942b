//! What kernels, streams, graphs and tickets of a device share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tandem_hal::{DeviceInfo, Error, Ledger, Options, Result};

use crate::code_object;
use crate::driver::{self, Context, Failure, Module, Staging};
use crate::group::Member;
use crate::stream::Trail;

/// One opened device.
pub(crate) struct Shared {
    info: DeviceInfo,
    options: Options,
    ledger: Ledger,
    // Modules before the context that they are loaded in.
    modules: Mutex<BTreeMap<&'static str, Arc<Module>>>,
    staging: Arc<Staging>,
    context: Arc<Context>,
    /// Its part in a group of several.
    member: Option<Member>,
    /// What each stream launched last.
    trails: Mutex<Vec<Weak<Trail>>>,
    /// The operators in flight when the device was lost.
    lost: OnceLock<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is guarded here is whole after every statement, so a poisoned lock still guards it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(
        info: DeviceInfo,
        options: Options,
        context: Arc<Context>,
        member: Option<Member>,
    ) -> Shared {
        Shared {
            info,
            options,
            ledger: Ledger::default(),
            modules: Mutex::default(),
            staging: Staging::new(&context),
            context,
            member,
            trails: Mutex::default(),
            lost: OnceLock::new(),
        }
    }

    pub(crate) fn info(&self) -> &DeviceInfo {
        &self.info
    }
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }
    pub(crate) fn staging(&self) -> &Arc<Staging> {
        &self.staging
    }
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn member(&self) -> Option<&Member> {
        self.member.as_ref()
    }

    /// Whether the device still works.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] for ever after a fault.
    pub(crate) fn alive(&self) -> Result<()> {
        self.lost
            .get()
            .map_or(Ok(()), |last_op| Err(Error::DeviceLost { last_op: last_op.clone() }))
    }

    /// A stream whose launches a fault may name.
    pub(crate) fn follow(&self, trail: &Arc<Trail>) {
        let mut trails = lock(&self.trails);
        trails.retain(|t| t.strong_count() > 0);
        trails.push(Arc::downgrade(trail));
    }

    /// The error of a failed call; a fault loses the device and names what each stream launched last.
    pub(crate) fn fail(&self, failure: Failure) -> Error {
        if !failure.is_fault() {
            return failure.into();
        }
        let last_op = self.lost.get_or_init(|| {
            let trails: Vec<_> = lock(&self.trails).iter().filter_map(Weak::upgrade).collect();
            let mut names: Vec<_> = trails.iter().filter_map(|t| t.last()).collect();
            names.dedup();
            if names.is_empty() { failure.to_string() } else { names.join(" or ") }
        });
        Error::DeviceLost { last_op: last_op.clone() }
    }

    /// `result` with the device's kind of error.
    ///
    /// # Errors
    /// As [`Shared::fail`].
    pub(crate) fn told<T>(&self, result: driver::Result<T>) -> Result<T> {
        result.map_err(|failure| self.fail(failure))
    }

    /// `result` of a call that waited for launches, collectives among them.
    ///
    /// # Errors
    /// As [`Shared::fail`], and [`Error::Peer`] when a rank did not take part.
    pub(crate) fn passed<T>(&self, result: driver::Result<T>) -> Result<T> {
        let value = self.told(result)?;
        self.member().map_or(Ok(()), Member::whole)?;
        Ok(value)
    }

    /// A code object on this device, loaded once.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when this build has none for the device, or what the driver says.
    pub(crate) fn module(&self, name: &'static str) -> Result<Arc<Module>> {
        let mut modules = lock(&self.modules);
        if let Some(module) = modules.get(name) {
            return Ok(module.clone());
        }
        let target = self.info.arch.as_str();
        let object = code_object::find(name, target).ok_or_else(|| Error::Unsupported {
            op: format!("code object {name}"),
            reason: format!("this build has none for {target}"),
        })?;
        let module = Arc::new(self.told(Module::load(&self.context, object))?);
        modules.insert(name, module.clone());
        Ok(module)
    }
}
