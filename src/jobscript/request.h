#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::jobscript {

// What a job asks for before it is submitted: read from its script and from the options of the
// command that would submit it. Pure functions. Both may hold any bytes.

enum class Form : std::uint8_t { kSlurm, kPbs, kLsf, kK8s };

/// What a job asks for, of an array one task, on all nodes together. What is not said, or depends
/// on the site, is absent. Texts may hold any bytes.
struct Request {
  std::string name = {}, project = {}, partition = {};
  std::string executable = {};  ///< name of the first program that does work, as far as one sees
  std::optional<std::int64_t> nodes = {}, gpus = {}, memory_bytes = {}, time_limit_s = {};
  std::optional<double> cpus = {};  ///< of pods also parts of a CPU
  std::optional<std::int64_t> array_tasks = {};
  /// The lines with which resources are asked for, in the form of the script and without its
  /// prefix: "--gres=gpu:4". They hold numbers and names of resources only.
  std::vector<std::string> directives = {};
  std::string deadline = {};  ///< by which the job must have ended, in the words of the user
};

/// The command that would submit the job, taken apart.
struct Command {
  std::vector<std::string> options = {};
  std::string script = {};  ///< name of its file, "-" for standard input; "" if there is none
};

/// Takes the words behind sbatch, qsub, bsub or kubectl apart. What follows the script is its own.
Command split_command(Form form, std::span<const std::string> words);

/// The form of a script: that of its first directive, or a manifest. Nothing if it has neither.
std::optional<Form> form_of(std::string_view script);

/// Reads directives up to the first command of the script. Options of the command win over them.
/// The name of the job is that of the script if nothing else is said. kParse for a manifest that
/// is not YAML or has no pod.
Result<Request> read_request(Form form, const Command& command, std::string_view script);

// For the forms.

/// The words of all directives, which begin with `prefix`, up to the first command; at most 16 KiB.
std::vector<std::string> directive_words(std::string_view script, std::string_view prefix);

/// The first program that a script runs apart from preparations: "train.py" of
/// `srun python train.py`. A guess; "" if there is none.
std::string executable_of(std::string_view script);

Request read_slurm(std::span<const std::string> options, std::string_view script);
Request read_pbs(std::span<const std::string> options, std::string_view script);
Request read_lsf(std::span<const std::string> options, std::string_view script);
Result<Request> read_k8s(std::string_view text);

}  // namespace ceems::jobscript
