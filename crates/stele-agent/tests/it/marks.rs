//! Where cache marks stand when a request was not answered, or when a session goes back to a model that it left.

use serde_json::json;
use stele_agent::{AgentOptions, Command, Driver};
use stele_core::{By, EndReason, Event, Micros, Price, Usage, Wire};
use stele_testkit::{Behaviour, Fault, FaultKind, Received, Say, Script};

use crate::epochs::{assert_clean, epochs, left, records};
use crate::stage::{LATER, Stage, ask};

/// A step that adds more blocks than Anthropic looks back over.
fn many() -> Say {
    (0..30).fold(Say::default(), |say, at| say.and_call("read", &json!({"path": format!("f{at}.txt")})))
}

fn stage(behaviour: Behaviour) -> Stage {
    let stage = Stage::new(Wire::AnthropicMessages, behaviour);
    for at in 0..30 {
        stage.write(&format!("f{at}.txt"), &format!("line of file {at}\n").repeat(20 + at));
    }
    stage
}

fn refused() -> FaultKind {
    FaultKind::Status { status: 401, headers: Vec::new(), body: Some(json!({"error": {"message": "no"}}).to_string()) }
}

/// What the answers of a session reported.
fn usages(stage: &Stage, driver: &Driver) -> Vec<Usage> {
    let answers = records(stage, driver.session()).into_iter().filter_map(|record| match record.event {
        Event::AssistantMessage(message) => message.usage,
        _ => None,
    });
    answers.collect()
}

fn marks(request: &Received) -> usize {
    String::from_utf8_lossy(&request.body).matches("\"cache_control\":").count()
}

fn go_on_with(driver: &mut Driver, route: &str, model: &str) {
    let (route, model) = (route.to_owned(), model.to_owned());
    driver.command(Command::SetModel { route, model, by: By::person("test") }).unwrap();
}

#[tokio::test]
async fn after_a_request_that_failed_all_that_was_answered_before_is_read() {
    let script = Script::new([many(), Say::text("three"), Say::text("four")]);
    // The step with the results fails, and so does the prompt after it.
    let behaviour = Behaviour::in_order(script).fault(Fault::at(1, 1..=2, refused()));
    let stage = stage(behaviour);
    let mut driver = stage.create();
    for _ in 0..2 {
        let prompt = "read them all";
        assert!(matches!(ask(&mut driver, prompt).await, EndReason::Failed { code, .. } if code == "provider.auth"));
    }
    assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed);
    assert_eq!(ask(&mut driver, "and then?").await, EndReason::Completed);
    let [first, third, fourth] = usages(&stage, &driver)[..] else { panic!() };
    assert_eq!(third.cache_read, first.input(), "what the answered request wrote");
    assert_eq!(fourth.cache_read, third.input());
    assert_eq!(stage.requests().iter().map(marks).collect::<Vec<_>>(), [3, 4, 4, 4, 4]);
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn going_back_to_a_model_reads_what_it_was_sent_and_is_priced_so() {
    let script = Script::new([Say::text("planned"), many(), Say::text("worked"), Say::text("judged")]);
    let stage = stage(Behaviour::in_order(script));
    stage.write("AGENTS.md", &"A rule of the project.\n".repeat(300));
    let price = Price {
        input: Some(4_000_000),
        output: Some(1),
        cache_read: Some(200_000),
        cache_write_5m: Some(5_000_000),
        ..Price::default()
    };
    let agent = stage.agent_with(|options: &mut AgentOptions| {
        options.routes.iter_mut().for_each(|route| route.own_price = Some(price));
    });
    let mut driver = Driver::create(&agent, &stage.start()).unwrap();
    ask(&mut driver, "plan").await;
    go_on_with(&mut driver, "other", "model-b");
    ask(&mut driver, "work").await;
    let [planned, _, worked] = usages(&stage, &driver)[..] else { panic!() };
    let back = driver.model_cost("main", "model-a").unwrap();
    let new = driver.model_cost("main", "model-c").unwrap();
    go_on_with(&mut driver, "main", "model-a");
    assert_eq!(driver.next_cut().unwrap().unwrap().cost, back);
    ask(&mut driver, "judge").await;
    let judged = usages(&stage, &driver)[3];
    assert_eq!(judged.cache_read, planned.input(), "the first model's entry is marked again");
    let input = worked.input().unwrap();
    assert_eq!(new.tokens, input, "a model that was asked nothing reads nothing");
    let lost = input - planned.input().unwrap();
    assert!(back.tokens.abs_diff(lost) <= lost / 100, "{} of {lost}", back.tokens);
    // What is not read is written.
    assert!(back.money.unwrap().0.abs_diff(back.tokens * 48 / 10) <= 1, "{back:?}");
    assert_eq!(epochs(&stage, driver.session()).pop().unwrap().cost, Some(back));
    assert!(stage.requests().iter().all(|request| marks(request) <= 4));
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn what_a_model_was_sent_two_hours_ago_is_not_priced_as_read() {
    let stage = stage(Behaviour::in_order(Script::new([Say::text("planned"), Say::text("worked")])));
    let mut driver = stage.create();
    ask(&mut driver, "plan").await;
    let session = driver.session().clone();
    drop(driver);
    let mut driver = stage.open_with(&session, |options| options.clock = LATER);
    go_on_with(&mut driver, "other", "model-b");
    ask(&mut driver, "work").await;
    let back = driver.model_cost("main", "model-a").unwrap();
    assert_eq!(back, driver.model_cost("main", "model-c").unwrap(), "as a model that was asked nothing");
    assert_eq!(Some(back.tokens), usages(&stage, &driver)[1].input());
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn what_no_mark_ends_at_is_not_read_though_it_is_the_same() {
    let (stage, session) = left(Wire::AnthropicMessages).await;
    let persona = |options: &mut AgentOptions| options.persona = Some("Answer in verse.".into());
    let mut driver = stage.open_with(&session, persona);
    let sent = driver.state().epoch().unwrap().sent.clone().unwrap();
    // The tools are the same, and no entry ends at their end.
    assert_eq!(driver.next_cut().unwrap().unwrap().cost.tokens, sent.input.unwrap());
    ask(&mut driver, "and now?").await;
    assert_eq!(usages(&stage, &driver).pop().unwrap().cache_read, Some(0));
    assert_eq!(stage.requests().last().map(marks), Some(3), "nothing is marked where nothing of it ended");
    assert_eq!(epochs(&stage, &session).pop().unwrap().cost.unwrap().money, None::<Micros>);
    assert_clean(&stage, driver);
}
