//! Plans of a model: made once, counted together.

use tandem_hal::{Device, Extents, Fingerprint, Operator, Plan, Result, Want};

/// Makes plans with row-invariant results and keeps what they need and compute.
pub struct Plans<'a> {
    device: &'a dyn Device,
    limits: Extents,
    fingerprint: Fingerprint,
    workspace_bytes: u64,
}

impl<'a> Plans<'a> {
    /// For launches up to `limits`.
    pub fn new(device: &'a dyn Device, limits: Extents) -> Self {
        Self { device, limits, fingerprint: Fingerprint::default(), workspace_bytes: 0 }
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
        self.workspace_bytes = self.workspace_bytes.max(plan.workspace_bytes());
        Ok(plan)
    }

    /// What the plans compute, and the scratch that every launch must be given.
    pub fn finish(self) -> (Fingerprint, u64) {
        (self.fingerprint, self.workspace_bytes)
    }
}
