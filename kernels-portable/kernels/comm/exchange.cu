// comm.all_reduce and comm.all_gather: every rank sends its elements into the windows of all, waits for theirs, and
// reads its own window in rank order. One kernel each, so that only one block ever waits for another device.
#include "../device/peers.cuh"

// A group of one.
KERNEL(comm_copy, 256)(View x, View y, u64 width, u64 elements) {
    FOR_EACH_ITEM(item, elements) {
        row_of<float>(y, item / width)[item % width] = row_of<const float>(x, item / width)[item % width];
    }
}

// Elements `first` to `first + count` of x to every rank. The last block to have sent tells them so.
KERNEL(comm_push, 256)(Peers peers, View x, u64 width, u64 first, u64 count) {
    Header *own = header_of(peers, peers.rank);
    u32 epoch = own->epoch + 1;
    FOR_EACH_ITEM(item, count) {
        u64 at = first + item;
        float value = row_of<const float>(x, at / width)[at % width];
        for (u64 to = 0; to < peers.ranks; to++) slot_of(peers, to, peers.rank, epoch)[item] = value;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    fence_system();
    if (atomicAdd(&own->done, 1u) + 1 != gridDim.x) return;
    own->done = 0, own->epoch = epoch;
    fence_system();
    for (u64 to = 0; to < peers.ranks; to++) {
        store_release(&header_of(peers, to)->arrived[epoch % 2][peers.rank], peers.subject << 32 | epoch);
    }
}

// Until every rank has sent the same: a thread for each. A rank that does not come or sends another thing breaks the
// group for all, and the host is told which it was.
KERNEL(comm_wait, 32)(Peers peers) {
    u64 from = threadIdx.x;
    if (from >= peers.ranks) return;
    Header *own = header_of(peers, peers.rank);
    u32 epoch = own->epoch;
    u64 began = clock_ns(), broken;
    for (;;) {
        broken = load_acquire(&own->broken);
        if (broken != 0) break;
        u64 word = load_acquire(&own->arrived[epoch % 2][from]);
        bool came = (u32)word == epoch;
        if (came && word >> 32 == peers.subject) return;
        if (came || clock_ns() - began > peers.patience_ns) {
            broken = from + 1;
            for (u64 to = 0; to < peers.ranks; to++) store_release(&header_of(peers, to)->broken, broken);
            break;
        }
    }
    store_release((u64 *)peers.status, broken);
}

// The sum in rank order, from elements that have arrived.
KERNEL(comm_sum, 256)(Peers peers, View y, u64 width, u64 first, u64 count) {
    u32 epoch = header_of(peers, peers.rank)->epoch;
    FOR_EACH_ITEM(item, count) {
        u64 at = first + item;
        float sum = slot_of(peers, peers.rank, 0, epoch)[item];
        for (u64 from = 1; from < peers.ranks; from++) sum += slot_of(peers, peers.rank, from, epoch)[item];
        row_of<float>(y, at / width)[at % width] = sum;
    }
}

// Every rank's columns side by side, in rank order.
KERNEL(comm_gather, 256)(Peers peers, View y, u64 width, u64 first, u64 count) {
    u32 epoch = header_of(peers, peers.rank)->epoch;
    FOR_EACH_ITEM(item, count) {
        u64 at = first + item;
        float *row = row_of<float>(y, at / width) + at % width;
        for (u64 from = 0; from < peers.ranks; from++) row[from * width] = slot_of(peers, peers.rank, from, epoch)[item];
    }
}
