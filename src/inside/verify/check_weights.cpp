#include "inside/verify/check_weights.h"

#include <memory>
#include <string>
#include <vector>

#include "weights/tensor_inventory.h"
#include "weights/tensor_scan.h"

namespace kilin {

namespace {

Check check_files(const ModelFiles& model) {
  const ModelFiles::WeightFiles files = model.check_weight_files();
  if (!files.faults.empty())
    return failed(fmt::format("{} of {} files can't be read", files.faults.size(), files.count), files.faults);
  return ok(fmt::format("{} {}", files.count, files.count == 1 ? "file" : "files"));
}

Check check_tensors_of_readable_files(const TensorInventory& inventory) {
  std::vector<std::string> faults;
  for (const InventoryTensor& tensor : inventory.tensors) {
    if (tensor.presence == Presence::Missing) faults.push_back(fmt::format("missing '{}'", tensor.name));
    if (!tensor.fault.empty()) faults.push_back(fmt::format("wrong '{}' {}", tensor.name, tensor.fault));
  }
  for (const std::string& name : inventory.surplus) faults.push_back(fmt::format("surplus '{}'", printable(name)));
  const size_t unreadable = inventory.count(Presence::Unreadable);
  return failed(fmt::format("{} of {} tensors are in files that can't be read, {} other faults", unreadable,
                            inventory.tensors.size(), faults.size()),
                faults);
}

Check check_all_tensors(const TensorStore& store, const TensorInventory& inventory, const ModelConfig& config) {
  if (inventory.count(Presence::Unreadable) > 0) return check_tensors_of_readable_files(inventory);
  check_tensors(store, config);  // throws one message that lists every fault
  return ok(
      fmt::format("{} tensors, {} parameters, {} bytes", inventory.tensors.size(), inventory.parameters(), inventory.bytes()));
}

Check check_values(CheckReporter& reporter, const TensorStore& store, const TensorInventory& inventory, ThreadPool& pool) {
  uint64_t total = 0, done = 0, values = 0;
  for (const InventoryTensor& tensor : inventory.tensors)
    if (tensor.presence == Presence::Stored) total += tensor.bytes();
  std::vector<std::string> faults, zeros;
  for (const InventoryTensor& tensor : inventory.tensors) {
    if (tensor.presence != Presence::Stored) continue;
    const StoredTensor stored = store.require(tensor.name);
    const FiniteScan scan = scan_finite(stored, pool);
    if (!scan.finite())
      faults.push_back(fmt::format("{}: tensor '{}' holds {} NaN and {} infinite values, the first at {}", stored.file,
                                   tensor.name, scan.nans, scan.infinities, position_of(stored.shape, *scan.first)));
    // A vector may be zero, such as the bias of a router that was never balanced; a zero matrix is a hole that a download left.
    if (scan.all_zero && stored.shape.rank() >= 2)
      zeros.push_back(fmt::format("{}: tensor '{}' holds nothing but zeros", stored.file, tensor.name));
    values += tensor.parameters();
    done += tensor.bytes();
    reporter.progress("values", done, total);
  }
  if (!faults.empty()) {
    const std::string summary = fmt::format("{} tensors hold values that are not finite", faults.size());
    faults.insert(faults.end(), zeros.begin(), zeros.end());
    return failed(summary, faults);
  }
  if (!zeros.empty()) return note(fmt::format("{} matrices are all zero", zeros.size()), zeros);
  return ok(fmt::format("{} values, all finite", values));
}

}  // namespace

bool check_weights(CheckReporter& reporter, const ModelFiles& files, const ModelConfig& config, ThreadPool& pool) {
  bool good = reporter.run("files", [&] { return check_files(files); });
  std::shared_ptr<const TensorStore> store;
  try {
    store = files.weights_on_demand(config);
  } catch (const Error&) {  // reported by "files"
  }
  if (!store) {
    reporter.skip("tensors", "there are no weights to look at");
    reporter.skip("values", "there are no weights to look at");
    return false;
  }
  const TensorInventory inventory = take_inventory(store.get(), config);
  good = reporter.run("tensors", [&] { return check_all_tensors(*store, inventory, config); }) && good;
  return reporter.run("values", [&] { return check_values(reporter, *store, inventory, pool); }) && good;
}

}  // namespace kilin
