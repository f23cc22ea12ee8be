"""Schedules of diffusion through librdna, against diffusers' schedulers: timesteps, scales, and every step of a sample."""
import ctypes
import json
import pathlib
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import torch

import rdna_program

CLASSES = {"ddim": diffusers.DDIMScheduler, "euler": diffusers.EulerDiscreteScheduler,
           "euler_ancestral": diffusers.EulerAncestralDiscreteScheduler,
           "dpmpp_2m": diffusers.DPMSolverMultistepScheduler, "lcm": diffusers.LCMScheduler}
SPACED = ["euler", "dpmpp_2m"]
STABLE = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012, "clip_sample": False}
COUNT = 4 * 9 * 7

LIBRARY = ctypes.CDLL(pathlib.Path(rdna_program.PROGRAM).parent.parent / "lib/librdna.so")
POINTER = ctypes.c_void_p
for name, result, arguments in [
        ("create", ctypes.c_int, [ctypes.c_char_p] * 3 + [ctypes.c_int, POINTER]), ("release", None, [POINTER]),
        ("steps", ctypes.c_int, [POINTER]), ("initial_scale", ctypes.c_double, [POINTER]),
        ("timestep", ctypes.c_double, [POINTER, ctypes.c_int]), ("input_scale", ctypes.c_double, [POINTER, ctypes.c_int]),
        ("needs_noise", ctypes.c_bool, [POINTER]),
        ("step", ctypes.c_int, [POINTER, ctypes.c_int, POINTER, POINTER, POINTER, ctypes.c_size_t])]:
    function = getattr(LIBRARY, "rdna_image_schedule_" + name)
    function.restype, function.argtypes = result, arguments
LIBRARY.rdna_last_error.restype = ctypes.c_char_p
INVALID, UNSUPPORTED, BAD_DATA = 1, 4, 7  # rdna_status


class Schedule:
    def __init__(self, settings, sampler, spacing="simple", steps=20):
        self.handle = POINTER()
        text = settings if isinstance(settings, str) else json.dumps(settings)
        self.status = LIBRARY.rdna_image_schedule_create(text.encode(), sampler.encode(), spacing.encode(), steps,
                                                         ctypes.byref(self.handle))
        self.sentence = LIBRARY.rdna_last_error().decode() if self.status else ""

    def __getattr__(self, name):
        return lambda *arguments: getattr(LIBRARY, "rdna_image_schedule_" + name)(self.handle, *arguments)

    def advance(self, step, output, noise, sample):
        pointers = [x.ctypes.data if x is not None else None for x in (output, noise, sample)]
        return self.step(step, *pointers, sample.size)

    def __del__(self):
        LIBRARY.rdna_image_schedule_release(self.handle)


def network(sample, timestep):
    """Some function of both that is not linear and stays of the size of noise."""
    return torch.tanh(sample * (1 + timestep / 2000)) + 0.3 * torch.sin(7 * sample + timestep)


class Noise:
    """What a scheduler draws next, seen by both sides."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *_, **__):
        self.last = torch.randn(COUNT, generator=self.generator)
        return self.last


class Schedules(unittest.TestCase):
    def compare(self, sampler, spacing, steps, settings):
        options = {**settings, **({f"use_{spacing}_sigmas": True} if spacing != "simple" else {})}
        if sampler not in ("ddim", "lcm"):
            options = {k: v for k, v in options.items() if k not in ("clip_sample", "clip_sample_range", "set_alpha_to_one")}
        theirs, ours = CLASSES[sampler](**options), Schedule(options, sampler, spacing, steps)
        self.assertEqual(ours.status, 0, ours.sentence)
        theirs.set_timesteps(steps)
        self.assertEqual(ours.steps(), len(theirs.timesteps))
        asked = np.array([ours.timestep(i) for i in range(steps)])
        # theirs cuts timesteps that f32 makes a little less than the last one
        cut = int(sampler == "dpmpp_2m" and spacing == "exponential" and asked[0] - float(theirs.timesteps[0]) == 1)
        np.testing.assert_allclose(asked[cut:], theirs.timesteps.double()[cut:], rtol=0, atol=2e-3)
        self.assertAlmostEqual(ours.initial_scale() / float(theirs.init_noise_sigma), 1, delta=2e-5)
        noise = Noise(steps)
        module = __import__(CLASSES[sampler].__module__, fromlist=["x"])
        kept, module.randn_tensor = module.randn_tensor, noise
        self.addCleanup(setattr, module, "randn_tensor", kept)
        sample = noise() * theirs.init_noise_sigma
        for i, t in enumerate(theirs.timesteps):
            scaled = theirs.scale_model_input(sample, t)
            np.testing.assert_allclose(sample * ours.input_scale(i), scaled, rtol=3e-5, atol=1e-6)
            output, mine = network(scaled, t), sample.numpy().copy()
            sample = theirs.step(output, t, sample).prev_sample
            self.assertEqual(ours.advance(i, output.numpy(), noise.last.numpy() if ours.needs_noise() else None, mine), 0)
            # a step's error alone: each begins at theirs
            error = np.linalg.norm(mine - sample.numpy()) / np.linalg.norm(sample)
            self.assertLess(error, 1e-4, f"{sampler}, {spacing}, {settings}: step {i} of {steps}")

    def test_steps(self):
        rows = [STABLE, {**STABLE, "prediction_type": "v_prediction"}, {**STABLE, "prediction_type": "sample"},
                {"beta_schedule": "linear", "clip_sample": True, "clip_sample_range": 1.5},
                {**STABLE, "timestep_spacing": "leading", "steps_offset": 1, "set_alpha_to_one": False},
                {**STABLE, "timestep_spacing": "trailing"}, {**STABLE, "timestep_spacing": "linspace"}]
        for sampler in CLASSES:
            for spacing in ["simple", "karras", "exponential"] if sampler in SPACED else ["simple"]:
                for steps, settings in [(steps, row) for row in rows for steps in (1, 7, 20)]:
                    if sampler == "euler_ancestral" and settings.get("prediction_type") == "sample":
                        continue  # which diffusers does not have
                    with self.subTest(f"{sampler} {spacing} {steps} {settings}"):
                        self.compare(sampler, spacing, steps, settings)

    def test_other_noise(self):
        for settings in [{"beta_schedule": "squaredcos_cap_v2", "clip_sample": False},
                         {**STABLE, "num_train_timesteps": 250}]:
            for sampler in CLASSES:
                with self.subTest(f"{sampler} {settings}"):
                    self.compare(sampler, "simple", 11, settings)
        zero = {**STABLE, "rescale_betas_zero_snr": True, "timestep_spacing": "trailing", "prediction_type": "v_prediction"}
        for sampler in ["euler", "dpmpp_2m"]:
            self.compare(sampler, "simple", 11, zero)
        self.compare("euler", "karras", 11, {**STABLE, "final_sigmas_type": "sigma_min"})
        self.compare("euler", "karras", 11, {**STABLE, "rescale_betas_zero_snr": True})
        last = {**STABLE, "final_sigmas_type": "sigma_min"}
        for steps in (10, 20):
            for more in ({}, {"lower_order_final": False}, {"euler_at_final": True}, {"lower_order_final": False, "euler_at_final": True}):
                self.compare("dpmpp_2m", "karras", steps, {**last, **more})

    def test_consistency_models(self):
        for settings, steps in [({"original_inference_steps": 100}, 8), ({"original_inference_steps": 7, "timestep_scaling": 3}, 7), ({"clip_sample": True}, 4),
                                ({"clip_sample": True, "clip_sample_range": 0.5}, 4),
                                ({"original_inference_steps": 50, "num_train_timesteps": 120}, 6)]:
            self.compare("lcm", "simple", steps, {**STABLE, **settings})
        self.compare("lcm", "simple", 4, {})

    def test_whole_runs(self):
        """20 steps, each from what ours made."""
        for sampler in CLASSES:
            with self.subTest(sampler):
                options = {k: v for k, v in STABLE.items() if k != "clip_sample" or sampler in ("ddim", "lcm")}
                theirs, ours = CLASSES[sampler](**options), Schedule(options, sampler)
                theirs.set_timesteps(20)
                noise = Noise(3)
                module = __import__(CLASSES[sampler].__module__, fromlist=["x"])
                kept, module.randn_tensor = module.randn_tensor, noise
                self.addCleanup(setattr, module, "randn_tensor", kept)
                sample = noise() * theirs.init_noise_sigma
                mine = sample.numpy().copy()
                for i, t in enumerate(theirs.timesteps):
                    output = torch.tanh(theirs.scale_model_input(sample, t))
                    sample = theirs.step(output, t, sample).prev_sample
                    answer = np.tanh(mine * np.float32(ours.input_scale(i)))
                    self.assertEqual(ours.advance(i, answer, noise.last.numpy(), mine), 0)
                self.assertLess(np.linalg.norm(mine - sample.numpy()) / np.linalg.norm(sample), 1e-3)

    def test_words_of_python(self):
        """Infinity and NaN, which Python's json writes, are no error where they mean what is missing, or are not read."""
        for text in ['{"lambda_min_clipped": -Infinity}', '{"x": NaN, "y": [Infinity,-Infinity], "NaN": "a \\"NaN, -Infinity"}']:
            schedule = Schedule(text, "dpmpp_2m")
            self.assertEqual(schedule.status, 0, schedule.sentence)
        for text, word in [('{"beta_start": NaN}', "beta_start"), ('{"beta_end": Infinity}', "beta_end"), ('{"sigma_max": Infinity}', "sigma_max"),
                           ('{"lambda_min_clipped": Infinity}', "lambda_min"), ('{"clip_sample": NaN}', "clip_sample"), ('{"x": 1NaN}', "JSON"), ('{"x": Infinit', "JSON"),
                           ('{"beta_end": 0.1, "beta_end": 0.2}', "uplicate")]:
            schedule = Schedule(text, "ddim" if "clip" in text[:8] else "dpmpp_2m")
            self.assertNotEqual(schedule.status, 0, text)
            self.assertIn(word, schedule.sentence)

    def test_refusals(self):
        for settings, sampler, spacing, steps, status, word in [
                (STABLE, "heun", "simple", 20, INVALID, "heun"), (STABLE, "euler", "magic", 20, INVALID, "magic"),
                (STABLE, "ddim", "karras", 20, UNSUPPORTED, "karras"), (STABLE, "ddim", "simple", 0, INVALID, "step"),
                (STABLE, "ddim", "simple", 1001, INVALID, "1001"), ("[]", "ddim", "simple", 20, BAD_DATA, "object"),
                ("{", "ddim", "simple", 20, BAD_DATA, "object"),
                ({"beta_schedule": "sigmoid"}, "ddim", "simple", 20, UNSUPPORTED, "sigmoid"),
                ({"beta_schedule": 3}, "ddim", "simple", 20, UNSUPPORTED, "beta_schedule"),
                ({"beta_start": "x"}, "ddim", "simple", 20, BAD_DATA, "beta_start"),
                ({"beta_end": 2}, "euler", "simple", 20, BAD_DATA, "beta_end"),
                ({"num_train_timesteps": 1e9}, "euler", "simple", 20, BAD_DATA, "num_train"),
                ({"beta_start": 0, "beta_end": 0}, "euler", "simple", 20, BAD_DATA, "noise"),
                ({"thresholding": True}, "ddim", "simple", 20, UNSUPPORTED, "thresholding"),
                ({"trained_betas": [0.1]}, "ddim", "simple", 20, UNSUPPORTED, "trained_betas"),
                ({"solver_order": 3}, "dpmpp_2m", "simple", 20, UNSUPPORTED, "order"),
                ({"algorithm_type": "sde-dpmsolver"}, "dpmpp_2m", "simple", 20, UNSUPPORTED, "sde-dpmsolver"),
                ({"timestep_spacing": "leading", "steps_offset": 600}, "euler", "simple", 20, UNSUPPORTED, "timestep"),
                ({"clip_sample": "no"}, "ddim", "simple", 20, BAD_DATA, "clip_sample"), ({"thresholding": 1}, "euler", "simple", 20, BAD_DATA, "thresholding"),
                (STABLE, "lcm", "simple", 51, UNSUPPORTED, "distilled"), ({**STABLE, "original_inference_steps": 1001}, "lcm", "simple", 4, UNSUPPORTED, "distilled"),
                ({**STABLE, "timestep_scaling": 0}, "lcm", "simple", 4, BAD_DATA, "timestep_scaling"), (STABLE, "lcm", "karras", 4, UNSUPPORTED, "karras"),
                ({"sigma_min": 0.1}, "euler", "karras", 20, UNSUPPORTED, "sigma_min"),
                ({"lambda_min_clipped": -5}, "dpmpp_2m", "simple", 20, UNSUPPORTED, "lambda_min"),
                (STABLE, "dpmpp_2m", "simple", 1000, UNSUPPORTED, "no less noise"),
                ({**STABLE, "timestep_spacing": "leading"}, "dpmpp_2m", "simple", 1000, UNSUPPORTED, "no less noise"),
                ({"beta_start": 0.1, "beta_end": 0, "num_train_timesteps": 20}, "dpmpp_2m", "simple", 19, UNSUPPORTED, "no less noise"),
                ({"rescale_betas_zero_snr": True}, "euler_ancestral", "simple", 1000, UNSUPPORTED, "no less noise")]:
            with self.subTest(f"{settings} {sampler} {spacing} {steps}"):
                schedule = Schedule(settings, sampler, spacing, steps)
                self.assertEqual(schedule.status, status, schedule.sentence)
                self.assertIn(word, schedule.sentence)

    def test_order_of_steps(self):
        schedule = Schedule(STABLE, "euler_ancestral", steps=5)
        sample, output = np.full(8, 2, np.float32), np.zeros(8, np.float32)
        self.assertEqual(schedule.advance(1, output, output, sample), INVALID)
        self.assertEqual(schedule.advance(0, output, None, sample), INVALID)
        self.assertEqual(schedule.advance(0, output, output, sample), 0)
        before = sample.copy()
        for step, values in [(2, sample), (5, sample), (-1, sample), (1, sample[:7].copy())]:
            self.assertEqual(schedule.advance(step, output, output, values), INVALID)
        np.testing.assert_array_equal(sample, before)
        self.assertEqual(schedule.advance(1, output, output, sample), 0)
        self.assertEqual(schedule.advance(0, output[:3].copy(), output, sample[:3].copy()), 0)
        self.assertTrue(np.isnan(schedule.timestep(5)) and np.isnan(schedule.input_scale(-1)))


if __name__ == "__main__":
    unittest.main()
