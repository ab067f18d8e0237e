#include "weights/weight_packer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "kernels/quant/panels.h"
#include "weights/encode_row.h"
#include "weights/stored_values.h"

namespace kilin {

namespace {

constexpr size_t kPanelsASlice = 8;  // what one thread packs before it looks for more, and writes at once: about 200 KB

// One thread's memory.
struct Scratch {
  std::vector<float> row;
  std::vector<std::byte> blocks;  // of 16 rows
  Tensor panels;                  // of a slice; 64-byte aligned
};

// Rows [begin, begin + count) in the panel's format, row-major.
const std::byte* rows_as_blocks(const PlannedPack& pack, const StoredTensor& tensor, size_t begin, size_t count,
                                Scratch& scratch) {
  if (tensor.format == pack.format) return tensor.bytes.data() + tensor.format.bytes_of(begin * pack.cols);
  const size_t row_bytes = StorageFormat(pack.format).bytes_of(pack.cols);
  scratch.row.resize(pack.cols);
  scratch.blocks.resize(kPanelRows * row_bytes);
  for (size_t r = 0; r < count; ++r) {
    read_values(tensor, (begin + r) * pack.cols, (begin + r + 1) * pack.cols, scratch.row.data());
    encode_row(tensor, begin + r, scratch.row, pack.format, Rounding::Searched, scratch.blocks.data() + r * row_bytes);
  }
  return scratch.blocks.data();
}

std::unique_ptr<PackStore> place_of(const PackPlan& plan, const PackOptions& options) {
  return options.place ? options.place(plan) : packs_in_memory(plan.bytes());
}

}  // namespace

WeightPacker::WeightPacker(PackPlan plan, const PackOptions& options)
    : plan_(std::move(plan)), options_(options), packs_(place_of(plan_, options)) {}

PackedMatrix WeightPacker::pack(const PlannedPack& pack, const StoredTensor& tensor, const TensorStore& store) {
  if (!packs_->is_complete()) {
    fill(pack, tensor);
    packs_->seal(pack.offset, pack.bytes);
    store.release(tensor.bytes);
    done_ += pack.bytes;
    if (options_.progress) options_.progress(done_, plan_.bytes());
  }
  return PackedMatrix::of_panels(pack.format, pack.rows, pack.cols, packs_->data() + pack.offset);
}

void WeightPacker::fill(const PlannedPack& pack, const StoredTensor& tensor) {
  const size_t panels = (pack.rows + kPanelRows - 1) / kPanelRows;
  if (panels == 0) return;
  const size_t panel_size = pack.bytes / panels;
  const size_t threads = options_.pool == nullptr ? 1 : options_.pool->size();
  std::vector<Scratch> scratch(threads);
  const auto pack_slice = [&](const Slice& s) {
    Scratch& own = scratch[s.worker];
    if (own.panels.empty()) own.panels = Tensor(DType::u8, {kPanelsASlice * panel_size});
    for (size_t p = s.begin; p < s.end; ++p) {
      const size_t begin = p * kPanelRows, count = std::min(kPanelRows, pack.rows - begin);
      pack_panel(pack.format, pack.cols, rows_as_blocks(pack, tensor, begin, count, own), count,
                 own.panels.data() + (p - s.begin) * panel_size);
    }
    packs_->write(pack.offset + s.begin * panel_size, {own.panels.data(), (s.end - s.begin) * panel_size});
  };
  if (options_.pool != nullptr) return options_.pool->parallel_for(panels, kPanelsASlice, pack_slice);
  for (size_t p = 0; p < panels; p += kPanelsASlice) pack_slice({p, std::min(p + kPanelsASlice, panels), 0});
}

void WeightPacker::finish() {
  if (!packs_->is_complete()) packs_->commit();
}

}  // namespace kilin
