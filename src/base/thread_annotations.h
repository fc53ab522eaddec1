#pragma once

#include "base/mutex.h"
