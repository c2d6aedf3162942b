// Page tables: entry numbers of a sequence to addresses of a cache.
#pragma once
#include "split.cuh"
#include "view.cuh"

struct PageTable {
    View pages;
    u64 sequences, table_pages, page_entries;
};

// Address of an entry of a sequence; -1 where there is no such sequence, place or page.
DEVICE i32 address_of(const PageTable &table, i64 sequence, i64 entry) {
    if (sequence < 0 || (u64)sequence >= table.sequences || entry < 0) return -1;
    auto [place, slot] = split((u64)entry, table.page_entries);
    if (place >= table.table_pages) return -1;
    i64 page = row_of<const i32>(table.pages, (u64)sequence)[place];
    // No pool reaches 2^31 entries; an address that would is none. The entry bounds the slot, not the size of a page.
    if (page < 0 || (page > 0 && table.page_entries > 0x7FFFFFFFu)) return -1;
    u64 address = (u64)page * table.page_entries + slot;
    return address > 0x7FFFFFFFu ? -1 : (i32)address;
}
