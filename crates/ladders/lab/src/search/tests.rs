use rayspin_tune::wisdom::Key;

use super::*;

fn space() -> Space {
    let threads: Vec<i64> = (1..=12).map(|i| 32 * i).collect();
    Space::none().axis("threads", &threads, 96).axis("unroll", &[1, 2, 4, 8, 16], 1)
}

/// A bowl with its least at 256 threads, unroll 4; configurations above 2048 in all do not launch.
fn machine(metrics: bool) -> Replay {
    let key = Key {
        ladder: String::new(),
        variant: String::new(),
        source: String::new(),
        device: String::new(),
        driver: String::new(),
        kind: String::new(),
        sizes: vec![],
    };
    let records: Vec<Record> = space()
        .configs()
        .into_iter()
        .map(|config| {
            let (threads, unroll) =
                (f64::from(config.get("threads").unwrap()), f64::from(config.get("unroll").unwrap()));
            let seconds = 1.0 + ((threads - 256.0) / 100.0).powi(2) + (unroll.log2() - 2.0).powi(2);
            let (trial, estimate) = if threads * unroll > 2048.0 {
                (Trial::Failed("too large".to_owned()), None)
            } else {
                let estimate = CostEstimate {
                    efficiency: 1.0 / seconds,
                    utilisation: threads,
                    least: 0.8 * seconds,
                    by_memory: false,
                };
                (Trial::Timed { seconds, error: 0.0 }, metrics.then_some(estimate))
            };
            Record::new(key.clone(), config, trial, estimate)
        })
        .collect();
    Replay::new(&records)
}

fn run(replay: &mut Replay, options: &Options) -> SearchResult {
    search(&space(), HashMap::new(), replay, options, &mut |_, _, _| Ok(())).unwrap()
}

fn best() -> Config {
    Config::of(&[("threads", 256), ("unroll", 4)])
}

#[test]
fn pruning_keeps_the_optimum_of_a_bowl_and_times_a_part() {
    let mut replay = machine(true);
    let result = run(&mut replay, &Options::default());
    assert_eq!((result.best.clone(), result.seconds), (best(), 1.0));
    assert!(replay.asked.len() < space().configs().len() / 3, "{} were timed", replay.asked.len());
    assert!(result.pruned() > 0.5 && result.default_seconds > Some(1.0));
    let exhaustive = run(&mut machine(true), &Options { exhaustive: true, ..Options::default() });
    assert_eq!((exhaustive.best.clone(), exhaustive.kept()), (best(), Some(1.0)));
    let timed = exhaustive.tried.iter().filter(|t| t.trial.is_some()).count();
    assert_eq!(timed, space().configs().len());
}

#[test]
fn without_metrics_steps_to_neighbours_find_the_bowl_s_bottom() {
    let mut replay = machine(false);
    let result = run(&mut replay, &Options { brute: 8, ..Options::default() });
    assert_eq!(result.best, best());
    let mut asked = replay.asked.clone();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), replay.asked.len(), "nothing is timed twice");
}

#[test]
fn of_a_large_space_only_neighbours_are_estimate() {
    struct Counting(Replay, usize);
    impl Evaluate for Counting {
        fn estimate(&mut self, config: &Config) -> Result<std::result::Result<Option<CostEstimate>, String>> {
            self.1 += 1;
            self.0.estimate(config)
        }
        fn evaluate(&mut self, config: &Config, _: Option<f64>) -> Result<Trial> {
            let value = |name: &str| config.find(name).unwrap() as f64;
            let seconds = 1.0 + (value("a") - 20.0).powi(2) + (value("b") - 3.0).powi(2);
            self.0.asked.push(config.clone());
            Ok(Trial::Timed { seconds, error: 0.0 })
        }
    }
    let values: Vec<i64> = (0..40).collect();
    let space = Space::none().axis("a", &values, 15).axis("b", &values, 1);
    let mut machine = Counting(Replay::default(), 0);
    let mut asked = 0;
    let stop = search(&space, HashMap::new(), &mut machine, &Options::default(), &mut |_, _, _| {
        asked += 1;
        if asked == 60 { Err(Error::Interrupted) } else { Ok(()) }
    });
    assert!(stop.is_err() && machine.1 <= 60, "{} were estimate", machine.1);
    let best = Config::of(&[("a", 20), ("b", 3)]);
    assert!(machine.0.asked.contains(&best), "steps lead to the bottom");
}

#[test]
fn without_time_the_default_is_what_there_is() {
    let mut replay = machine(false);
    let result = run(&mut replay, &Options { budget: 0.0, brute: 8, ..Options::default() });
    assert_eq!(result.best, space().default_config());
    assert!(result.tried.iter().filter(|t| t.pruned == Some(Pruned::Budget)).count() > 50);
}

#[test]
fn earlier_results_are_not_repeated_and_a_stop_loses_nothing() {
    let mut kept = HashMap::new();
    let stop = search(&space(), HashMap::new(), &mut machine(false), &Options::default(), &mut |c, t, _| {
        kept.insert(c.clone(), t.clone());
        if kept.len() == 20 { Err(Error::Interrupted) } else { Ok(()) }
    });
    assert!(matches!(stop, Err(Error::Interrupted)));
    let mut replay = machine(false);
    let result =
        search(&space(), kept.clone(), &mut replay, &Options::default(), &mut |_, _, _| Ok(())).unwrap();
    assert_eq!(result.best, best());
    assert!(replay.asked.iter().all(|config| !kept.contains_key(config)));
}

#[test]
fn a_space_where_nothing_works_is_an_error_that_says_why() {
    let mut nothing = Replay::default();
    let error = search(&space(), HashMap::new(), &mut nothing, &Options::default(), &mut |_, _, _| Ok(()));
    assert!(error.unwrap_err().to_string().contains("not among the recorded results"));
}

#[test]
fn neighbours_of_the_best_are_tried_though_the_metrics_leave_them_out() {
    // The metrics know nothing of what a cache does to long launches.
    let space =
        Space::none().axis("points", &[32, 64, 128, 256, 512, 1024], 128).axis("unroll", &[1, 2, 4], 1);
    struct Cached(Vec<Config>);
    impl Evaluate for Cached {
        fn estimate(&mut self, config: &Config) -> Result<std::result::Result<Option<CostEstimate>, String>> {
            let value = |name: &str| config.find(name).unwrap() as f64;
            let efficiency = value("points") * value("unroll");
            Ok(Ok(Some(CostEstimate { efficiency, utilisation: 1.0, least: 0.0, by_memory: false })))
        }
        fn evaluate(&mut self, config: &Config, _: Option<f64>) -> Result<Trial> {
            let value = |name: &str| config.find(name).unwrap() as f64;
            self.0.push(config.clone());
            let seconds = 1.0 + (value("points") / 64.0).log2().abs() + 0.1 / value("unroll");
            Ok(Trial::Timed { seconds, error: 0.0 })
        }
    }
    let mut machine = Cached(Vec::new());
    let result =
        search(&space, HashMap::new(), &mut machine, &Options::default(), &mut |_, _, _| Ok(())).unwrap();
    assert_eq!(result.best, Config::of(&[("points", 64), ("unroll", 4)]));
    assert!(machine.0.contains(&Config::of(&[("points", 1024), ("unroll", 4)])), "what they keep is timed");
    assert!(machine.0.len() < space.configs().len(), "{} were timed", machine.0.len());
    let share = result.pruned() * 18.0;
    assert!((share - (18 - machine.0.len()) as f64).abs() < 1e-9, "{share}");
}
