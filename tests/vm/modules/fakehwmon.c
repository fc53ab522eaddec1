// A hwmon chip "grace_power": power1 (input) is `microwatts`, power2 (average) is one watt more, and energy1 increases with time.
#include <linux/hwmon.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/platform_device.h>

static long microwatts = 250000000;
module_param(microwatts, long, 0644);
static struct platform_device *device;

static umode_t is_visible(const void *data, enum hwmon_sensor_types type, u32 attribute, int channel) { return 0444; }

static int read_value(struct device *d, enum hwmon_sensor_types type, u32 attribute, int channel, long *value) {
  *value = type == hwmon_power ? microwatts + channel * 1000000 : ktime_get_ns() / 1000 * (microwatts / 1000000);
  return 0;
}

static int read_label(struct device *d, enum hwmon_sensor_types type, u32 attribute, int channel, const char **text) {
  *text = channel ? "Module 1" : "Module 0";
  return 0;
}

static const struct hwmon_ops ops = {.is_visible = is_visible, .read = read_value, .read_string = read_label};
static const u32 power_config[] = {HWMON_P_INPUT | HWMON_P_LABEL, HWMON_P_AVERAGE | HWMON_P_LABEL, 0};
static const u32 energy_config[] = {HWMON_E_INPUT | HWMON_E_LABEL, 0};
static const struct hwmon_channel_info power = {.type = hwmon_power, .config = power_config};
static const struct hwmon_channel_info energy = {.type = hwmon_energy, .config = energy_config};
static const struct hwmon_channel_info *info[] = {&power, &energy, NULL};
static const struct hwmon_chip_info chip = {.ops = &ops, .info = info};

static int __init fakehwmon_init(void) {
  device = platform_device_register_simple("fakehwmon", -1, NULL, 0);
  if (IS_ERR(device)) return PTR_ERR(device);
  return PTR_ERR_OR_ZERO(devm_hwmon_device_register_with_info(&device->dev, "grace_power", NULL, &chip, NULL));
}

static void __exit fakehwmon_exit(void) { platform_device_unregister(device); }

module_init(fakehwmon_init);
module_exit(fakehwmon_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Power sensors for tests");
