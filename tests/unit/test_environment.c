/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>

#include "engine/environment.h"

Test(environment, kernels_that_may_hang)
{
	cr_expect(environment_may_hang("5.10.0-32-rt-amd64", true));
	cr_expect(environment_may_hang("6.11.9", true));
	cr_expect_not(environment_may_hang("6.12.0", true));
	cr_expect_not(environment_may_hang("7.0.1", true));
	cr_expect_not(environment_may_hang("5.10.0-32-amd64", false));
	cr_expect_not(environment_may_hang("unknown", true));
}
