//! Plans of a model: made once, counted together.

use tandem_hal::{Device, Extents, Fingerprint, Operator, Plan, Result, Want};

/// Makes plans with row-invariant results and keeps what they need and compute.
pub struct Plans<'a> {
    device: &'a dyn Device,
    limits: Extents,
    fingerprint: Fingerprint,
    needs: Needs,
    beside: bool,
}

/// Scratch that launches must be given.
#[derive(Debug, Clone, Copy, Default)]
pub struct Needs {
    /// Every launch.
    pub workspace_bytes: u64,
    /// Those that may go beside others.
    pub side_bytes: u64,
}

impl<'a> Plans<'a> {
    /// For launches up to `limits`.
    pub fn new(device: &'a dyn Device, limits: Extents) -> Self {
        Self {
            device,
            limits,
            fingerprint: Fingerprint::default(),
            needs: Needs::default(),
            beside: false,
        }
    }

    /// The largest extents of a launch.
    pub fn limits(&self) -> Extents {
        self.limits
    }

    /// Sets the largest extents for the plans that follow.
    pub fn limit(&mut self, limits: Extents) {
        self.limits = limits;
    }

    /// A plan.
    ///
    /// # Errors
    /// [`tandem_hal::Error::BadDescriptor`] or [`tandem_hal::Error::Unsupported`].
    pub fn plan<D: Operator>(&mut self, descriptor: D) -> Result<Plan<D>> {
        self.plan_within(descriptor, self.limits)
    }

    /// A plan for launches up to other limits.
    ///
    /// # Errors
    /// As [`Plans::plan`].
    pub fn plan_within<D: Operator>(&mut self, descriptor: D, limits: Extents) -> Result<Plan<D>> {
        let plan = self.device.plan(descriptor, &Want::row_invariant(limits))?;
        self.fingerprint.add(&plan);
        let Needs { workspace_bytes, side_bytes } = &mut self.needs;
        *workspace_bytes = plan.workspace_bytes().max(*workspace_bytes);
        if self.beside {
            *side_bytes = plan.workspace_bytes().max(*side_bytes);
        }
        Ok(plan)
    }

    /// Plans of launches that may go beside others.
    pub fn beside<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.beside, true);
        let made = make(self);
        self.beside = outer;
        made
    }

    /// What the plans compute, and the scratch that they need.
    pub fn finish(self) -> (Fingerprint, Needs) {
        (self.fingerprint, self.needs)
    }
}
