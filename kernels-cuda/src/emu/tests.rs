use super::{EmuProvider, host};
use crate::{
    driver::{Argument, Shape, ViewArgument},
    launcher::Target as _,
};
use tandem_hal::{Embed, EmbedIo, Enc, Extents, Lane, Options, Place, Provider, Sym, View, Want};

#[test]
fn launches_that_no_kernel_takes_are_refused() {
    let one = Shape::flat(1, 32);
    let refused = |kernel, arguments: &[Argument<'_>]| {
        host::OnHost.launch(kernel, &one, arguments).unwrap_err().to_string()
    };
    assert!(refused("rows_none__portable", &[]).ends_with("no kernel rows_none__portable"));
    let view = Argument::View(ViewArgument::default());
    for arguments in [vec![], vec![view; 6], vec![view; 3]] {
        let message = refused("rows_embed__portable", &arguments);
        assert!(message.contains("arguments of other sizes"), "{message}");
    }
}

#[test]
fn the_row_runs_and_not_the_reference() {
    let device = EmuProvider.open(&[0], &Options::default()).unwrap().remove(0);
    let stream = device.stream().unwrap();
    let view = |enc, shape: &[u64]| {
        let bytes = View::reserved_bytes(enc, shape);
        let memory = device.allocate(bytes, Place::Device, "test").unwrap();
        View::dense(&memory, 0, enc, shape).unwrap()
    };
    let (id, table) = (view(Enc::I32, &[2]), view(Enc::BF16, &[3, 2]));
    let y = view(Enc::BF16, &[2, 2]);
    stream.write(&id, &[2, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]).unwrap();
    stream.write(&table, &(0..12).collect::<Vec<u8>>()).unwrap();
    let want = Want::row_invariant(Extents::of(&[(Sym::Tokens, 2)]));
    let plan = device.plan(Embed { vocab: 3, width: 2 }, &want).unwrap();
    assert_eq!((plan.kernel(2), plan.bits()), ("portable", "portable"));
    let (workspace, before) = (View::absent(Enc::U8), host::launches());
    let io = EmbedIo { id: &id, table: &table, y: &y };
    Lane { stream: &*stream, workspace: &workspace }.run(&plan, io).unwrap();
    assert!(host::launches() > before);
    assert_eq!(stream.read(&y).unwrap(), [8, 9, 10, 11, 0, 0, 0, 0]);
}
