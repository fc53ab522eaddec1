#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "exporter/redfish/documents.h"
#include "exporter/redfish/session.h"

namespace ceems::exporter::redfish {

struct ChassisReading {
  std::string label;  ///< Id as a label value, unique
  Watts watts;
  Clock::SteadyTime time{};
};

struct Readings {
  std::vector<ChassisReading> chassis;  ///< of all that have been read lately, in their order
  /// Power of the node, where it was read just now.
  std::optional<double> node_watts;
};

struct ReaderOptions {
  /// Ids of the chassis that make up the node; empty: chosen.
  std::vector<std::string> node_chassis;
  /// How long the last reading of a chassis that cannot be read stands in.
  std::chrono::milliseconds max_age{std::chrono::minutes(5)};
};

/// Reads the power of all chassis of a service: connects (service root, login, list of chassis) and
/// keeps that.
///
/// - A refused token (401, 403) is renewed once per read, then the chassis is asked again.
/// - No answer, or nothing readable: connects anew at the next read, then after 5 s, 10 s, ... 60
/// s;
///   after a refused login after 60 s, 2 min, ... 10 min, as services lock accounts.
/// - The list is made anew every 10 minutes, after a minute where a chassis is gone or there is
/// none.
/// - At most kMaxPages pages and kMaxChassis chassis.
///
/// Power of the node, where no chassis is named: the greatest current power among the chassis with
/// a computer system in them, else among all. Chassis contain each other (node, GPU tray), so their
/// sum would count energy twice.
///
/// Used by one thread at a time.
class Reader {
 public:
  static constexpr std::size_t kMaxPages = 32;
  static constexpr std::size_t kMaxChassis = 128;

  Reader(std::unique_ptr<Session> session, ReaderOptions options, const Clock& clock);

  /// See Session::set_hostname().
  void set_hostname(std::string hostname) { session_->set_hostname(std::move(hostname)); }
  /// The readings; an error where no chassis could be read. Ends soon after `stop`, for good.
  Result<Readings> read(const std::stop_token& stop);

 private:
  struct Known {
    Chassis chassis;
    std::string label;
    ChassisReading last;  ///< where was_read
    bool was_read = false;
    bool fresh = false;  ///< last is of this read
  };

  Result<> connect();
  Result<> list_chassis(std::string_view collection);
  Result<> add_chassis(const std::string& link, std::vector<Known>& found);
  Result<Readings> read_all();
  Result<Watts> read_power(const Known& known);
  Result<> renew();
  void back_off(const Error& error);
  void report_partial(const std::optional<Error>& error);
  [[nodiscard]] Readings collect_readings();
  [[nodiscard]] std::optional<double> node_watts();

  std::unique_ptr<Session> session_;
  ReaderOptions options_;
  const Clock& clock_;

  bool connected_ = false;
  ServiceRoot root_;
  std::vector<Known> chassis_;
  bool chassis_gone_ = false;
  Clock::SteadyTime listed_{};
  std::string node_;  // label of the chassis chosen for the node

  std::optional<Error> last_error_;  // of connecting
  Clock::SteadyTime next_attempt_{};
  std::chrono::seconds pause_{0};
  Clock::SteadyTime next_renewal_{};
  bool renewed_ = false;  // in this read
  bool partial_ = false;
};

}  // namespace ceems::exporter::redfish
