//! The shortest plan that still fails: whatever can be left out is left out.

use bandog_core::lock::{HoldLimits, Recovery};

use crate::engine::Engine;
use crate::judge::{Failure, judge};
use crate::plan::Plan;
use crate::sim::World;

/// Cuts a failing plan down. The failure may change on the way; that it fails does not.
pub fn shrink(plan: &Plan, engine: &Engine) -> (Plan, Failure) {
    let mut best = plan.clone();
    let mut failure =
        fails(&best, engine).unwrap_or_else(|| Failure { promise: "none", story: "the plan does not fail".to_owned() });
    loop {
        let smaller =
            candidates(&best).into_iter().find_map(|plan| fails(&plan, engine).map(|failure| (plan, failure)));
        match smaller {
            Some((plan, found)) => (best, failure) = (plan, found),
            None => return (best, failure),
        }
    }
}

fn fails(plan: &Plan, engine: &Engine) -> Option<Failure> {
    judge(plan, &World::play(plan, engine, false))
}

fn candidates(plan: &Plan) -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut without = |change: &dyn Fn(&mut Plan)| {
        let mut smaller = plan.clone();
        change(&mut smaller);
        plans.push(smaller);
    };
    for user in 0..plan.users.len() {
        without(&|plan| drop(plan.users.remove(user)));
    }
    for fault in 0..plan.faults.len() {
        without(&|plan| {
            plan.faults.remove(fault);
        });
    }
    for client in (0..plan.watch.len()).filter(|client| plan.watch[*client].is_some()) {
        without(&|plan| plan.watch[client] = None);
    }
    for (user, script) in plan.users.iter().enumerate() {
        for turn in 0..script.turns.len() {
            if script.turns.len() > 1 {
                without(&|plan| drop(plan.users[user].turns.remove(turn)));
            }
            for act in 0..script.turns[turn].acts.len() {
                without(&|plan| {
                    plan.users[user].turns[turn].acts.remove(act);
                });
            }
            if script.turns[turn].wait.is_some() {
                without(&|plan| plan.users[user].turns[turn].wait = None);
            }
            if script.turns[turn].cancel_after.is_some() {
                without(&|plan| plan.users[user].turns[turn].cancel_after = None);
            }
            if script.turns[turn].limits != HoldLimits::default() {
                without(&|plan| plan.users[user].turns[turn].limits = HoldLimits::default());
            }
            if script.turns[turn].recovery != Recovery::Notify {
                without(&|plan| plan.users[user].turns[turn].recovery = Recovery::Notify);
            }
        }
    }
    for part in 0..4 {
        let share = |plan: &mut Plan| match part {
            0 => std::mem::take(&mut plan.net.drop),
            1 => std::mem::take(&mut plan.net.duplicate),
            2 => std::mem::take(&mut plan.net.late),
            _ => std::mem::take(&mut plan.net.lose_push),
        };
        let mut smaller = plan.clone();
        if share(&mut smaller) > 0 {
            plans.push(smaller);
        }
    }
    plans
}
