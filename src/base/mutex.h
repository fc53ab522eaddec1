#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

// Mutexes for clang's thread-safety analysis
// (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html). The mutexes of libstdc++ carry no
// annotations, so our code uses these, and `scripts/thread-safety` checks every access to a member
// that is marked as guarded. g++ sees plain classes.
#if defined(__clang__)
#define CEEMS_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define CEEMS_THREAD_ATTRIBUTE(x)
#endif

/// On a member: it may be read and written only while the mutex is held.
#define CEEMS_GUARDED_BY(mutex) CEEMS_THREAD_ATTRIBUTE(guarded_by(mutex))
/// On a function, or on a lambda after its parameters: the caller must hold the mutex.
#define CEEMS_REQUIRES(mutex) CEEMS_THREAD_ATTRIBUTE(requires_capability(mutex))
/// On a function that locks the mutex: the caller must not hold it.
#define CEEMS_EXCLUDES(mutex) CEEMS_THREAD_ATTRIBUTE(locks_excluded(mutex))
/// On a function that the analysis cannot follow. A comment must say why it is correct.
#define CEEMS_NO_THREAD_SAFETY_ANALYSIS CEEMS_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace ceems {

/// A std::mutex with annotations. Prefer MutexLock to lock() and unlock().
class CEEMS_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() CEEMS_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void unlock() CEEMS_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  [[nodiscard]] bool try_lock() CEEMS_THREAD_ATTRIBUTE(try_acquire_capability(true)) {
    return mutex_.try_lock();
  }

 private:
  std::mutex mutex_;
};

struct AdoptLock {};
/// For a MutexLock over a mutex that the caller has already locked.
inline constexpr AdoptLock kAdoptLock;

/// Holds a mutex until the end of the scope. unlock() and lock() release and take it in between.
/// Only one thread may use a lock.
class CEEMS_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) CEEMS_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  MutexLock(Mutex& mutex, AdoptLock /*adopt*/) CEEMS_REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() CEEMS_THREAD_ATTRIBUTE(release_capability()) {
    if (held_) {
      mutex_.unlock();
    }
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() CEEMS_THREAD_ATTRIBUTE(acquire_capability()) {
    mutex_.lock();
    held_ = true;
  }
  void unlock() CEEMS_THREAD_ATTRIBUTE(release_capability()) {
    held_ = false;
    mutex_.unlock();
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

/// A condition variable. A wait releases the mutex while it sleeps. It ends when `done()` returns
/// true, when its time is up, or, with a stop token, when a stop is requested. `done` is called
/// with the mutex held, so lambdas that read guarded members must be marked CEEMS_REQUIRES. Waits
/// return the last result of done().
class Condition {
 public:
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

  template <typename Done>
  void wait(MutexLock& lock, Done done) CEEMS_NO_THREAD_SAFETY_ANALYSIS {
    condition_.wait(lock, std::move(done));
  }
  template <typename Done>
  bool wait(MutexLock& lock,
            const std::stop_token& stop,
            Done done) CEEMS_NO_THREAD_SAFETY_ANALYSIS {
    return condition_.wait(lock, stop, std::move(done));
  }
  template <typename Duration, typename Done>
  bool wait_for(MutexLock& lock, Duration time, Done done) CEEMS_NO_THREAD_SAFETY_ANALYSIS {
    return condition_.wait_for(lock, time, std::move(done));
  }
  template <typename Duration, typename Done>
  bool wait_for(MutexLock& lock, const std::stop_token& stop, Duration time, Done done)
      CEEMS_NO_THREAD_SAFETY_ANALYSIS {
    return condition_.wait_for(lock, stop, time, std::move(done));
  }
  template <typename Time, typename Done>
  bool wait_until(MutexLock& lock, Time deadline, Done done) CEEMS_NO_THREAD_SAFETY_ANALYSIS {
    return condition_.wait_until(lock, deadline, std::move(done));
  }
  template <typename Time, typename Done>
  bool wait_until(MutexLock& lock, const std::stop_token& stop, Time deadline, Done done)
      CEEMS_NO_THREAD_SAFETY_ANALYSIS {
    return condition_.wait_until(lock, stop, deadline, std::move(done));
  }

 private:
  std::condition_variable_any condition_;
};

/// Sleeps for `time`, or less if a stop is requested.
template <typename Duration>
void sleep_for(Duration time, const std::stop_token& stop) {
  Mutex mutex;
  Condition never;
  MutexLock lock(mutex);
  never.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace ceems
