// A powercap control type that looks like intel-rapl: package-0 with core and dram, and package-1. The energies increase with the
// machine's time at watts[] W and wrap at max_range microjoules, so that a test knows what to expect. They start as if watts[] had
// held since the boot; a change holds from the next read on.
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/powercap.h>

static unsigned int watts[4] = {100, 40, 20, 90};  // package-0, core, dram, package-1
module_param_array(watts, uint, NULL, 0644);
static unsigned long long max_range = 262143328850ULL;
module_param(max_range, ullong, 0444);
static unsigned long long jump;  // microjoules that package-0 shows more from the next read on
module_param(jump, ullong, 0644);
static bool asleep;  // whether the energies also increase while the machine is suspended
module_param(asleep, bool, 0444);

static struct powercap_control_type *control_type;
static struct powercap_zone zones[4];
static u64 energy[4];     // microjoules, without wraps
static u64 last_read[4];  // microseconds
static DEFINE_MUTEX(lock);

static int get_energy(struct powercap_zone *zone, u64 *value) {
  int index = zone - zones;
  u64 now = div_u64(asleep ? ktime_get_boottime_ns() : ktime_get_ns(), 1000);
  mutex_lock(&lock);
  energy[index] += (now - last_read[index]) * watts[index];
  last_read[index] = now;
  if (index == 0) {
    energy[0] += jump;
    jump = 0;
  }
  div64_u64_rem(energy[index], max_range, value);
  mutex_unlock(&lock);
  return 0;
}

static int get_max_range(struct powercap_zone *zone, u64 *value) {
  *value = max_range;
  return 0;
}

static int release(struct powercap_zone *zone) { return 0; }

static int get_limit(struct powercap_zone *zone, int constraint, u64 *microwatts) {
  *microwatts = 150000000;
  return 0;
}

static int get_window(struct powercap_zone *zone, int constraint, u64 *microseconds) {
  *microseconds = 976;
  return 0;
}

static int refuse(struct powercap_zone *zone, int constraint, u64 value) { return -EPERM; }

static const char *get_name(struct powercap_zone *zone, int constraint) { return "long_term"; }

static const struct powercap_zone_ops zone_ops = {
    .get_energy_uj = get_energy, .get_max_energy_range_uj = get_max_range, .release = release};
static const struct powercap_zone_constraint_ops constraint_ops = {.set_power_limit_uw = refuse,
                                                                   .get_power_limit_uw = get_limit,
                                                                   .set_time_window_us = refuse,
                                                                   .get_time_window_us = get_window,
                                                                   .get_name = get_name};

static int add(int index, const char *name, struct powercap_zone *parent) {
  return PTR_ERR_OR_ZERO(
      powercap_register_zone(&zones[index], control_type, name, parent, &zone_ops, 1, &constraint_ops));
}

static int __init fakerapl_init(void) {
  control_type = powercap_register_control_type(NULL, "intel-rapl", NULL);
  if (IS_ERR(control_type)) return PTR_ERR(control_type);
  // If something fails, the zones before it stay registered, because the machine lives for only one test.
  return add(0, "package-0", NULL) ?: add(1, "core", &zones[0]) ?: add(2, "dram", &zones[0]) ?: add(3, "package-1", NULL);
}

static void __exit fakerapl_exit(void) {
  static const int children_first[] = {2, 1, 0, 3};
  int i;
  for (i = 0; i < 4; ++i) powercap_unregister_zone(control_type, &zones[children_first[i]]);
  powercap_unregister_control_type(control_type);
}

module_init(fakerapl_init);
module_exit(fakerapl_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("RAPL counters for tests");
