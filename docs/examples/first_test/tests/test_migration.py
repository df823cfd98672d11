def test_the_new_agent_is_the_old_one(equivalence):
    equivalence.assert_same(
        "old", "new", questions=["How warm is it in Rome and Oslo?"]
    )
