//! Chosen rows.

use std::sync::Arc;

use tandem_hal::{
    Checked, Error, Kernel, Ladder, MAX_OPERANDS, Needs, Op, Result, Stream, Want, dispatch,
};
use tandem_portable::{Launcher, ViewArgument, arguments};

use crate::driver::{Module, Queue};
use crate::launcher::{OnDevice, argument};
use crate::rows::{self, Launch, Rows};
use crate::shared::Shared;
use crate::stream::RocmStream;

/// A chosen ladder with its code objects loaded, erased.
pub(crate) trait Run: Send + Sync {
    fn op(&self) -> &Op;
    fn name(&self, rows: u64) -> &'static str;
    fn bits(&self) -> &'static str;
    fn needs(&self) -> Needs;
    fn launch(&self, shared: &Shared, queue: &Queue, io: &Checked<'_>) -> Result<()>;
}

struct Chosen<D: Rows> {
    descriptor: D,
    op: Op,
    ladder: Ladder<D, Launch<D>>,
    /// The code object of each row of the ladder.
    modules: Vec<Arc<Module>>,
}

impl<D: Rows> Chosen<D> {
    fn new(shared: &Shared, descriptor: &D, want: &Want) -> Result<Self> {
        let ladder = rows::choose(descriptor, shared.info(), want, shared.options())?;
        let modules = ladder.rows.iter().map(|row| shared.module(row.launch.object));
        let modules = modules.collect::<Result<_>>()?;
        let op = descriptor.clone().into();
        Ok(Chosen { descriptor: descriptor.clone(), op, ladder, modules })
    }

    /// The place in the ladder of the row for `rows` rows of data.
    fn place(&self, rows: u64) -> Option<usize> {
        self.ladder.rows.iter().position(|row| row.tokens.contains(&rows))
    }
}

impl<D: Rows> Run for Chosen<D> {
    fn op(&self) -> &Op {
        &self.op
    }
    fn name(&self, rows: u64) -> &'static str {
        self.ladder.at(rows).map_or("none", |row| row.name)
    }
    fn bits(&self) -> &'static str {
        self.ladder.bits()
    }
    fn needs(&self) -> Needs {
        self.ladder.needs
    }
    fn launch(&self, shared: &Shared, queue: &Queue, io: &Checked<'_>) -> Result<()> {
        let extents = io.extents();
        let rows = extents.at(D::ROWS);
        let place = self.place(rows).ok_or_else(|| Error::Unsupported {
            op: D::ID.into(),
            reason: format!("the row forced for it does not take {rows} rows"),
        })?;
        let mut operands = [ViewArgument::default(); MAX_OPERANDS];
        for (operand, view) in operands.iter_mut().zip(io.views()) {
            *operand = argument(view)?;
        }
        let target = OnDevice { shared, queue, module: &self.modules[place] };
        let on = Launcher { target: &target, extents, workspace: argument(io.workspace())? };
        let io = arguments::<D>(operands.into_iter());
        (self.ladder.rows[place].launch.run)(&self.descriptor, &io, &on)
    }
}

/// What [`tandem_hal::Device::prepare`] gives.
pub(crate) struct RocmKernel {
    run: Arc<dyn Run>,
    shared: Arc<Shared>,
}

impl RocmKernel {
    /// Choose rows for an operator and load their code objects.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the reason of each row, or what the driver says.
    pub(crate) fn prepare(shared: &Arc<Shared>, op: &Op, want: &Want) -> Result<RocmKernel> {
        fn chosen<D: Rows>(shared: &Shared, d: &D, want: &Want) -> Result<Arc<dyn Run>> {
            Ok(Arc::new(Chosen::new(shared, d, want)?))
        }
        let run = dispatch!(op, d => chosen(shared, d, want))?;
        Ok(RocmKernel { run, shared: shared.clone() })
    }
}

impl Kernel for RocmKernel {
    fn name(&self, tokens: u64) -> &'static str {
        self.run.name(tokens)
    }
    fn bits(&self) -> &'static str {
        self.run.bits()
    }
    fn needs(&self) -> Needs {
        self.run.needs()
    }
    fn launch(&self, io: &Checked<'_>, on: &dyn Stream) -> Result<()> {
        RocmStream::of(on, &self.shared)?.launch(&self.run, io)
    }
}
