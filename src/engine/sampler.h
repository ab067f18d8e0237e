// From logits to the next token.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/kernel_table.h"

namespace kilin {

class RowSampler;
class ThreadPool;

/// How the next token is drawn. The steps run in the order of the fields, as in Hugging Face transformers.
struct SamplingParams {
  double repetition_penalty = 1.0;  ///< > 0; divides positive and multiplies negative logits of ids that occurred; 1 = off
  double temperature = 0.0;         ///< >= 0; 0 takes the largest logit (the lower id of equals), and nothing below matters
  size_t top_k = 0;                 ///< keep the k most probable; 0 = all
  double top_p = 1.0;               ///< (0, 1]: keep the fewest, most probable first, that reach this probability together
  double min_p = 0.0;               ///< [0, 1]: drop what is less probable than this share of the most probable
  uint64_t seed = 0;                ///< with the position, the only source of chance

  /// What the caller's user knows the fields as.
  struct Names {
    const char* repetition_penalty = "repetition_penalty";
    const char* temperature = "temperature";
    const char* top_p = "top_p";
    const char* min_p = "min_p";
  };

  /// @throws InvalidArgument naming the field, its value and its range; also for NaN
  void validate(const Names& names) const;
  void validate() const { validate({}); }
};

/// One row of logits, and what becomes of it.
struct SampleRow {
  std::span<float> logits;           ///< [vocab_size]; the repetition penalty is written into them
  const SamplingParams* params;      ///< valid ones
  std::span<const int32_t> history;  ///< the ids that the repetition penalty looks at: prompt and answer
  uint64_t position;  ///< absolute position of the token that is drawn: keys the random number, so that neither batch nor
                      ///< scheduling can change what is drawn
  std::optional<int32_t> id = {};  ///< out: the next token; nothing if a logit is NaN or all are -inf, which only broken
                                   ///< weights give
};

/// Draws tokens of one vocabulary, a row a thread. What is drawn is a function of the row alone: other rows and the number of
/// threads change nothing. Holds scratch memory of about 100 KB a worker, so one caller at a time; does not allocate after
/// construction.
class Sampler {
 public:
  /// @param workers the most threads of a pool that rows are given to
  Sampler(const KernelTable& kernels, size_t vocab_size, size_t workers = 1);
  ~Sampler();

  /// Sets every row's `id`. @pre pool.size() <= workers
  void sample(ThreadPool& pool, std::span<SampleRow> rows);

  /// One row, on the calling thread. @returns its id
  std::optional<int32_t> sample(std::span<float> logits, const SamplingParams& params, std::span<const int32_t> history,
                                uint64_t position);

 private:
  std::vector<RowSampler> workers_;
};

}  // namespace kilin
