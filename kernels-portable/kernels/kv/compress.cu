// kv.compress: gated pooling of a group of tokens into one latent: weights are the softmax of the gates over the
// group, channel by channel. Exponentials and their sum are f64, weights, products and sums f32. One channel of a row
// a thread; zeros where a member of the group is missing.
#include "../device/entry.cuh"
#include "../device/grid.cuh"

struct Group {
    const Entry &entry;
    const View &open;
    const i32 *members;
    u64 ratio;
};

// Number `i` of the vector of a member.
DEVICE float number(const Group &group, u64 member, u64 i) {
    return float_of(load_bytes<u32>(entry_at(group.entry, group.open, group.members[member]) + 4 * i));
}

DEVICE bool is_whole(const Group &group) {
    for (u64 i = 0; i < group.ratio; i++) {
        if (!entry_at(group.entry, group.open, group.members[i])) return false;
    }
    return true;
}

// Of a whole group.
DEVICE float pooled(const Group &group, u64 channel, u64 width) {
    // The largest passes over NaN, which comes back through its own exponential.
    double largest = -1.0 / 0.0, sum = 0;
    for (u64 i = 0; i < group.ratio; i++) {
        double gate = number(group, i, width + channel);
        largest = gate > largest ? gate : largest;
    }
    for (u64 i = 0; i < group.ratio; i++) sum += exp((double)number(group, i, width + channel) - largest);
    float y = 0;
    for (u64 i = 0; i < group.ratio; i++) {
        float weight = (float)(exp((double)number(group, i, width + channel) - largest) / sum);
        y += weight * number(group, i, channel);
    }
    return y;
}

KERNEL(kv_compress__portable, 256)(View open, View members, View y, Entry entry, u64 ratio, u64 tokens) {
    begin();
    u64 width = entry.width / 2;
    FOR_EACH_ITEM(item, tokens * width) {
        auto [token, channel] = split(item, width);
        Group group = {entry, open, row_of<const i32>(members, token), ratio};
        float value = is_whole(group) ? pooled(group, channel, width) : 0.0f;
        row_of<u16>(y, token)[channel] = bf16_result(value);
    }
}
