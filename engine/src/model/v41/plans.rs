//! Plans of a model: made once, counted together.

use std::collections::BTreeSet;
use std::iter::successors;

use tandem_hal::{Device, Extents, Fingerprint, Operator, Plan, Result, Sym, Want};

/// Makes plans with row-invariant results and keeps what they need and compute.
pub struct Plans<'a> {
    device: &'a dyn Device,
    limits: Extents,
    fingerprint: Fingerprint,
    needs: Needs,
    kernels: Kernels,
    beside: bool,
}

/// Names of operators, each with that of a row which some of its launches take.
pub type Kernels = BTreeSet<(&'static str, &'static str)>;

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
            kernels: Kernels::new(),
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
        // A plan tells the row of a number of tokens alone.
        let most = limits.at(Sym::Tokens).max(1);
        let rows = successors(Some(1), |rows| Some(rows * 2)).take_while(|rows| *rows < most);
        self.kernels.extend(rows.chain([most]).map(|rows| (D::ID, plan.kernel(rows))));
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

    /// What the plans compute, the scratch that they need, and what runs them.
    pub fn finish(self) -> (Fingerprint, Needs, Kernels) {
        (self.fingerprint, self.needs, self.kernels)
    }
}
