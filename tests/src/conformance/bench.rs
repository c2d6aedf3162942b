//! Runs of one case on the devices under test.

use super::{
    case::{Case, Data},
    operator::{self, Launch},
    stage::{Arrangement, Seen, Stage},
};
use std::sync::Arc;
use tandem_hal::{Device, Error, Extents, Facts, Numerics, Result, Want};

/// How a case is run.
#[derive(Clone, Copy, Default, Debug)]
pub struct How {
    /// Where operands lie.
    pub arrangement: Arrangement,
    /// What outputs, scratch and the space between hold before.
    pub fill: Fill,
    /// By which road.
    pub road: Road,
    /// What the plan is made for; the launch's own extents if not said.
    pub limits: Option<Extents>,
}

/// The byte that stands wherever nothing was written.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Fill {
    /// 0xFF: NaN in every float format and in every scale, -1 as an integer.
    #[default]
    Nan,
    /// Zeros.
    Zero,
}

impl Fill {
    /// The byte.
    pub const fn byte(self) -> u8 {
        match self {
            Fill::Nan => 0xFF,
            Fill::Zero => 0,
        }
    }
}

/// How a launch reaches the device.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Road {
    /// At once.
    #[default]
    Eager,
    /// Captured, then replayed.
    Graph,
    /// By the decomposition.
    Steps,
}

/// A case and the ranks it runs on.
pub struct Bench<'a> {
    /// The case.
    pub case: &'a Case,
    /// Its operands.
    pub facts: &'a Facts,
    /// One device a rank.
    pub devices: &'a [Arc<dyn Device>],
    /// The promise that plans ask for.
    pub numerics: Numerics,
}

impl Bench<'_> {
    /// What a plan is made for.
    pub fn want(&self, limits: Extents) -> Want {
        Want { numerics: self.numerics, limits }
    }

    /// A loaded stage and its plan, on one device.
    ///
    /// # Errors
    /// What planning or the device returns; no decomposition is `Unsupported`.
    pub fn stage(
        &self,
        device: &Arc<dyn Device>,
        extents: &Extents,
        data: &[Vec<u8>],
        how: &How,
    ) -> Result<(Box<dyn Launch>, Stage)> {
        let want = self.want(how.limits.unwrap_or(*extents));
        let op = &self.case.op;
        let plan = match how.road {
            Road::Steps => {
                let none = Error::Unsupported { op: op.id().into(), reason: "a primitive".into() };
                operator::plan_steps(op, &**device, &want)?.ok_or(none)?
            }
            Road::Eager | Road::Graph => operator::plan(op, &**device, &want)?,
        };
        let bytes = plan.workspace_bytes();
        let mut stage = Stage::new(device, self.facts, extents, how.arrangement, bytes)?;
        stage.load(data, how.fill.byte())?;
        Ok((plan, stage))
    }

    /// Run on fresh memory, on every rank.
    ///
    /// # Errors
    /// What any rank returns.
    pub fn run(&self, extents: &Extents, data: &Data, how: &How) -> Result<Vec<Seen>> {
        self.each_rank(|rank, device| {
            let (plan, stage) = self.stage(device, extents, &data[rank], how)?;
            let mut launch = || plan.launch(&*stage.stream, &stage.workspace, &stage.views);
            if how.road == Road::Graph {
                let graph = stage.stream.capture(&mut launch)?;
                stage.stream.replay(&*graph)?;
            } else {
                launch()?;
            }
            stage.stream.sync()?;
            stage.seen()
        })
    }

    /// Do something on every rank, each on its own thread when there are several.
    ///
    /// # Errors
    /// The first error by rank.
    pub fn each_rank<T: Send>(
        &self,
        one: impl Fn(usize, &Arc<dyn Device>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        if let [device] = self.devices {
            return Ok(vec![one(0, device)?]);
        }
        std::thread::scope(|scope| {
            let one = &one;
            let ranks = self.devices.iter().enumerate();
            let ranks: Vec<_> = ranks.map(|(i, d)| scope.spawn(move || one(i, d))).collect();
            let joined = ranks.into_iter().map(std::thread::ScopedJoinHandle::join);
            joined.map(|r| r.unwrap_or(Err(Error::Peer { rank: 0 }))).collect()
        })
    }
}
