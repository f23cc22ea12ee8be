"""Schedules of diffusion through librdna, against diffusers' schedulers: timesteps, scales, and every step of a sample."""
import ctypes
import importlib
import json
import pathlib
import sys
import types
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import torch

import rdna_program

# The module asks for torchsde, whose noise is replaced here.
sys.modules.setdefault("torchsde", types.ModuleType("torchsde"))
SDE = importlib.import_module("diffusers.schedulers.scheduling_dpmsolver_sde").DPMSolverSDEScheduler
CLASSES = {"ddim": diffusers.DDIMScheduler, "ddpm": diffusers.DDPMScheduler, "pndm": diffusers.PNDMScheduler,
           "euler": diffusers.EulerDiscreteScheduler, "euler_ancestral": diffusers.EulerAncestralDiscreteScheduler,
           "heun": diffusers.HeunDiscreteScheduler, "dpmpp_2m": diffusers.DPMSolverMultistepScheduler,
           "dpmpp_2m_sde": diffusers.DPMSolverMultistepScheduler, "dpmpp_3m_sde": diffusers.DPMSolverMultistepScheduler,
           "dpmpp_sde": SDE, "unipc": diffusers.UniPCMultistepScheduler, "lcm": diffusers.LCMScheduler}
SPACED = ["euler", "heun", "dpmpp_2m", "dpmpp_2m_sde", "dpmpp_3m_sde", "dpmpp_sde", "unipc"]
OWN = {"pndm": {"skip_prk_steps": True}, "dpmpp_2m_sde": {"algorithm_type": "sde-dpmsolver++"},
       "dpmpp_3m_sde": {"algorithm_type": "sde-dpmsolver++", "solver_order": 3}}
CLIPPING = ("ddim", "ddpm", "heun", "lcm")
STABLE = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012, "clip_sample": False}
SHAPE = (1, 4, 9, 7)
COUNT = 4 * 9 * 7

LIBRARY = ctypes.CDLL(pathlib.Path(rdna_program.PROGRAM).parent.parent / "lib/librdna.so")
POINTER = ctypes.c_void_p
for name, result, arguments in [
        ("create", ctypes.c_int, [ctypes.c_char_p] * 3 + [ctypes.c_int, POINTER]), ("release", None, [POINTER]),
        ("steps", ctypes.c_int, [POINTER]), ("step_of", ctypes.c_int, [POINTER, ctypes.c_int]), ("initial_scale", ctypes.c_double, [POINTER]),
        ("timestep", ctypes.c_double, [POINTER, ctypes.c_int]), ("input_scale", ctypes.c_double, [POINTER, ctypes.c_int]),
        ("needs_noise", ctypes.c_bool, [POINTER]),
        ("begin", ctypes.c_int, [POINTER, ctypes.c_int, POINTER, POINTER, POINTER, ctypes.c_size_t]),
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
        self.generator, self.last = torch.Generator().manual_seed(seed), torch.zeros(SHAPE)

    def __call__(self, *_, **__):
        self.last = torch.randn(SHAPE, generator=self.generator)
        return self.last


def scheduler_of(sampler, options):
    """diffusers', of those settings that it has."""
    known = {k: v for k, v in options.items() if sampler in CLIPPING or k not in ("clip_sample", "clip_sample_range")}
    if sampler not in ("ddim", "pndm", "lcm"):
        known.pop("set_alpha_to_one", None)
    return CLASSES[sampler](**known, **OWN.get(sampler, {}))


class Motion:
    """Noise of a step of DPMSolverSDE's, from one Brownian motion: of the first half |noise|'s last values, of the whole
    step those and others in the middle."""

    def __init__(self, noise):
        self.noise, self.half = noise, None

    def __call__(self, sigma, to):
        drawn = self.noise()
        if self.half is None:
            self.half = (drawn, to)
            return drawn
        (first, middle), self.half = self.half, None
        return (first * (sigma - middle).sqrt() + drawn * (middle - to).sqrt()) / (sigma - to).sqrt()


class Schedules(unittest.TestCase):
    def compare(self, sampler, spacing, steps, settings, change=None):
        """|change|: of their levels."""
        options = {**settings, **({f"use_{spacing}_sigmas": True} if spacing in ("karras", "exponential", "beta") else {})}
        theirs, ours = scheduler_of(sampler, options), Schedule({**options, **OWN.get(sampler, {})}, sampler, spacing, steps)
        self.assertEqual(ours.status, 0, ours.sentence)
        theirs.set_timesteps(steps)
        if change:
            change(theirs)
        self.assertEqual(ours.steps(), len(theirs.timesteps))
        asked = np.array([ours.timestep(i) for i in range(ours.steps())])
        # theirs cuts timesteps that f32 makes a little less than the last one
        cut = int(not theirs.timesteps.is_floating_point() and spacing in ("exponential", "beta") and asked[0] - float(theirs.timesteps[0]) == 1)
        np.testing.assert_allclose(asked[cut:], theirs.timesteps.double()[cut:], rtol=0, atol=2e-3)
        self.assertAlmostEqual(ours.initial_scale() / float(theirs.init_noise_sigma), 1, delta=2e-5)
        noise = Noise(steps)
        module = __import__(CLASSES[sampler].__module__, fromlist=["x"])
        kept = getattr(module, "randn_tensor", None)
        module.randn_tensor = noise
        self.addCleanup(setattr, module, "randn_tensor", kept)
        sample = noise() * theirs.init_noise_sigma
        theirs.noise_sampler = Motion(noise)
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
            for spacing in ["simple", "karras", "exponential", "beta"] if sampler in SPACED else ["simple"]:
                for steps, settings in [(steps, row) for row in rows for steps in ((1, 7, 20) if spacing == "simple" else (7,))]:
                    if sampler in ("euler_ancestral", "pndm", "dpmpp_sde") and settings.get("prediction_type") == "sample":
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
                theirs, ours = scheduler_of(sampler, STABLE), Schedule({**STABLE, **OWN.get(sampler, {})}, sampler)
                theirs.set_timesteps(20)
                noise = Noise(3)
                module = __import__(CLASSES[sampler].__module__, fromlist=["x"])
                kept = getattr(module, "randn_tensor", None)
                module.randn_tensor = noise
                self.addCleanup(setattr, module, "randn_tensor", kept)
                theirs.noise_sampler = Motion(noise)
                sample = noise() * theirs.init_noise_sigma
                mine = sample.numpy().copy()
                for i, t in enumerate(theirs.timesteps):
                    output = torch.tanh(theirs.scale_model_input(sample, t))
                    sample = theirs.step(output, t, sample).prev_sample
                    answer = np.tanh(mine * np.float32(ours.input_scale(i)))
                    self.assertEqual(ours.advance(i, answer, noise.last.numpy(), mine), 0)
                self.assertLess(np.linalg.norm(mine - sample.numpy()) / np.linalg.norm(sample), 1e-3)

    def test_own_settings(self):
        """Of PNDM, UniPC, DDPM, and orders of the others' last steps."""
        for sampler, spacing, steps, settings in [
                ("pndm", "simple", 2, STABLE), ("pndm", "simple", 9, {**STABLE, "set_alpha_to_one": True}),
                ("unipc", "simple", 9, {**STABLE, "solver_order": 3}), ("unipc", "karras", 20, {**STABLE, "solver_order": 3}),
                ("unipc", "simple", 6, {**STABLE, "solver_order": 1}), *[("unipc", "simple", 9, {**STABLE, "solver_order": order, "solver_type": "bh1", "final_sigmas_type": "sigma_min"}) for order in (1, 2, 3)],
                ("unipc", "simple", 9, {**STABLE, "solver_order": 3, "final_sigmas_type": "sigma_min"}),
                ("unipc", "simple", 9, {**STABLE, "lower_order_final": False, "final_sigmas_type": "sigma_min"}),
                ("ddpm", "simple", 50, {**STABLE, "clip_sample": True, "clip_sample_range": 2.0}), ("heun", "karras", 6, {**STABLE, "clip_sample": True}),
                ("ddpm", "simple", 1000, STABLE), ("pndm", "simple", 500, STABLE), ("heun", "simple", 3, {}), ("ddpm", "simple", 3, {}), ("dpmpp_sde", "simple", 3, {}),
                *[(sampler, "simple", steps, {**STABLE, **more}) for sampler in ("dpmpp_2m_sde", "dpmpp_3m_sde") for steps in (3, 9, 16)
                  for more in ({"final_sigmas_type": "sigma_min"}, {"lower_order_final": False}, {"euler_at_final": True})]]:
            with self.subTest(f"{sampler} {spacing} {steps} {settings}"):
                self.compare(sampler, spacing, steps, settings)

    def test_levels_of_others(self):
        """Spacings that diffusers' schedulers have no setting for: levels by themselves, and steps where those are put in."""
        aligned = diffusers.schedulers.AysSchedules
        share = 1 / (1 + np.cumprod(1 - np.linspace(0.00085**.5, 0.012**.5, 1000)**2)**-1 - 1)
        trained = np.sqrt((1 - share) / share)
        for steps in (1, 7, 10, 25):
            levels = {}
            for spacing, name in [("ays", "StableDiffusionSigmas"), ("ays_xl", "StableDiffusionXLSigmas")]:
                table = np.log([*aligned[name][:-1], 0.029])
                levels[spacing] = np.exp(np.interp(np.linspace(0, 10, steps + 1), np.arange(11), table))[:-1]
            levels["sgm_uniform"] = np.interp(np.linspace(999, 0, steps + 1)[:-1], np.arange(1000), trained)
            for spacing, sigmas in levels.items():
                timesteps = np.interp(np.log(sigmas), np.log(trained), np.arange(1000))
                if spacing == "sgm_uniform":
                    timesteps = np.linspace(999, 0, steps + 1)[:-1]
                for sampler in SPACED:
                    def change(theirs):
                        rounded = not theirs.timesteps.is_floating_point()
                        at = torch.from_numpy(np.rint(timesteps) if rounded else timesteps)
                        s = torch.from_numpy(np.interp(at, np.arange(1000), trained) if rounded and spacing == "sgm_uniform" else sigmas)
                        ends, middle = theirs.sigmas[-1:], s
                        if theirs.order == 2:
                            middle, between = torch.cat([s[:1], s[1:].repeat_interleave(2)]), at
                            at = torch.cat([at[:1], at[1:].repeat_interleave(2)])
                            if sampler == "dpmpp_sde":
                                between = np.interp((np.log(sigmas[1:]) + np.log(sigmas[:-1])) / 2, np.log(trained), np.arange(1000))
                                at[1::2] = torch.from_numpy(between)
                        theirs.sigmas, theirs.timesteps = torch.cat([middle, ends]).float(), at.to(theirs.timesteps.dtype)
                    with self.subTest(f"{sampler} {spacing} {steps}"):
                        self.compare(sampler, spacing, steps, STABLE, change)

    def test_beginning_with_pictures(self):
        """At every level: what diffusers adds noise by, and steps from there."""
        for sampler in CLASSES:
            for level in (0, 1, 3, 5):
                with self.subTest(f"{sampler} {level}"):
                    theirs, ours = scheduler_of(sampler, STABLE), Schedule({**STABLE, **OWN.get(sampler, {})}, sampler, "simple", 6)
                    theirs.set_timesteps(6)
                    first, noise, random = ours.step_of(level), Noise(level), Noise(9)
                    if sampler == "pndm" and level:  # theirs asks twice at one level then, and goes on from the wrong one
                        step, answers = theirs._get_prev_sample, []
                        weights = [[1], [3 / 2, -1 / 2], [23 / 12, -16 / 12, 5 / 12], [55 / 24, -59 / 24, 37 / 24, -9 / 24]]

                        def advance(output, t, sample):
                            answers.insert(0, output)
                            mixed = sum(w * e for w, e in zip(weights[min(len(answers), 4) - 1], answers))
                            return types.SimpleNamespace(prev_sample=step(sample, t, t - 1000 // 6, mixed))
                        theirs.step = advance
                    self.assertAlmostEqual(float(theirs.timesteps[first]), ours.timestep(first), delta=1e-3)
                    module = __import__(CLASSES[sampler].__module__, fromlist=["x"])
                    kept = getattr(module, "randn_tensor", None)
                    module.randn_tensor = noise
                    self.addCleanup(setattr, module, "randn_tensor", kept)
                    theirs.noise_sampler = Motion(noise)
                    if hasattr(theirs, "set_begin_index"):
                        theirs.set_begin_index(first)
                    picture, drawn, mine = random().numpy(), random(), np.empty(SHAPE, np.float32)
                    self.assertEqual(ours.begin(first, picture.ctypes.data, drawn.numpy().ctypes.data, mine.ctypes.data, COUNT), 0)
                    at = theirs.timesteps[first:first + 1]
                    sample = theirs.add_noise(torch.from_numpy(picture), drawn, at)
                    for i, t in enumerate(theirs.timesteps[first:], first):
                        error = np.linalg.norm(mine - sample.numpy()) / np.linalg.norm(sample)
                        self.assertLess(error, 1e-3, f"before step {i}")
                        output = network(theirs.scale_model_input(sample, t), t)
                        sample = theirs.step(output, t, sample).prev_sample
                        answer = network(torch.from_numpy(mine) * ours.input_scale(i), t).numpy()
                        self.assertEqual(ours.advance(i, answer, noise.last.numpy() if ours.needs_noise() else None, mine), 0)
                    self.assertLess(np.linalg.norm(mine - sample.numpy()) / np.linalg.norm(sample), 1e-3)
        for sampler, refused in [("heun", 1), ("dpmpp_sde", 3), ("pndm", 1), ("ddim", 6), ("ddim", -1)]:
            values = np.zeros(3, np.float32)
            self.assertEqual(Schedule(STABLE, sampler, "simple", 6).begin(refused, *[values.ctypes.data] * 3, 3), INVALID)
        self.assertEqual([Schedule(STABLE, "heun", "simple", 4).step_of(i) for i in (-1, 0, 1, 3, 4)], [-1, 0, 2, 6, -1])

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
                (STABLE, "heun2", "simple", 20, INVALID, "heun2"), (STABLE, "ddpm", "beta", 20, UNSUPPORTED, "beta"),
                ({"skip_prk_steps": False, "_class_name": "PNDMScheduler"}, "pndm", "simple", 20, UNSUPPORTED, "skip_prk_steps"),
                ({"_class_name": "PNDMScheduler"}, "pndm", "simple", 20, UNSUPPORTED, "skip_prk_steps"),
                ({"variance_type": "learned"}, "ddpm", "simple", 20, UNSUPPORTED, "variance_type"), ({"predict_x0": False}, "unipc", "simple", 20, UNSUPPORTED, "predict_x0"),
                ({"disable_corrector": [0]}, "unipc", "simple", 20, UNSUPPORTED, "disable_corrector"), ({"solver_p": {}}, "unipc", "simple", 20, UNSUPPORTED, "solver_p"),
                ({"solver_order": 4}, "unipc", "simple", 20, BAD_DATA, "solver_order"), ({"solver_type": "heun"}, "dpmpp_2m_sde", "simple", 20, UNSUPPORTED, "solver_type"), (STABLE, "euler", "magic", 20, INVALID, "magic"),
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
